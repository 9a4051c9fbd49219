"""petridish: a laboratory for the science of deep learning on small exact tasks."""

__version__ = "0.1.0"
