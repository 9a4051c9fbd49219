"""A small table: wide networks with sparse starts in scikit-learn, against a forest."""

import sys

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from petridish import SparseMLPClassifier

if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 569
    x, y = load_breast_cancer(return_X_y=True)
    for method in (SparseMLPClassifier(random_state=0), RandomForestClassifier(random_state=0)):
        scores = cross_val_score(method, x[:rows], y[:rows], cv=3)
        print(f"{type(method).__name__}: accuracy {scores.mean():.3f} ± {scores.std():.3f}")
