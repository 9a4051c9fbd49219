"""A figure of a paper: sample size against width, dense and sparse starts [PF Fig. 1]."""

import sys

import petridish

if __name__ == "__main__":
    scale = sys.argv[1] if len(sys.argv) > 1 else "demo"  # 800 networks, about a minute
    runs = petridish.run("PF-1", scale=scale)
    print(runs.verdicts())
    runs.figure().savefig("paper_figure.png")
