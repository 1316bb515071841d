"""Names by which scikit-learn and torchmetrics call what is here: an error says ours.

They are no aliases: scikit-learn's functions of these names take the targets first.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

OTHERS = {
    "accuracy_score": "accuracy",
    "auroc": "roc_auc",
    "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy",
    "brier_score_loss": "brier_score",
    "cohen_kappa_score": "cohen_kappa",
    "explained_variance_score": "explained_variance",
    "expected_calibration_error": "calibration_error",
    "f1_score": "f1",
    "fbeta_score": "fbeta",
    "jaccard_index": "jaccard",
    "jaccard_score": "jaccard",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_squared_error": "mse",
    "precision_score": "precision",
    "r2_score": "r2",
    "recall_score": "recall",
    "roc": "roc_curve",
    "roc_auc_score": "roc_auc",
    "root_mean_squared_error": "rmse",
    "top_k_accuracy_score": "top_k_accuracy",
    "F1Score": "F1",
    "AUROC": "ROCAUC",
    "MeanAbsoluteError": "MAE",
    "MeanMetric": "Mean",
    "MeanSquaredError": "MSE",
    "R2Score": "R2",
}


def unknown(package: str, name: str, known: Sequence[str]) -> AttributeError:
    """The error for a name that there is not, with the one that is meant."""
    if name in OTHERS:
        ours = OTHERS[name]
        how = "(predictions, targets): predictions come first" if ours.islower() else ""
        return AttributeError(f"{package} has no {name!r}; here it is {ours}{how}")
    near = difflib.get_close_matches(name, known, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
