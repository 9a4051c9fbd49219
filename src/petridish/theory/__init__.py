"""Theory as plain functions on numbers: what the papers prove, made to be computed and checked.

The modules here belong to no paper: `stationary` and `chain_predictors` have laws of chains,
`fourier`, `majority` and `closed_form` spectra and gradients, `parity_step` one gradient step on a
parity, `lower_bounds` what resources must at least be. `pareto` has PF's theory and classical
solvers, `hidden` HP's theory, `features` the maximum margins of TH Ch. 7, `inputs` FL's bounds and
networks, `variables` the capacity of attention and the heads of TH Ch. 4, `induction` the minimal
model of TH Ch. 8. Pages in the
repository: docs/reference/theory.md, theory-hidden.md, theory-margins.md, theory-inputs.md,
theory-variables.md and theory-induction.md.
"""
