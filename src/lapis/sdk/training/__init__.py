"""Estimators and hyperparameter searches."""
