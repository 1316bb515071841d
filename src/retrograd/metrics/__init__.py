"""Metrics: how good predictions are. Functions take `(predictions, targets)`, in this order, and
are otherwise scikit-learn's; running metrics see batches, one by one or inside of `jit`.

Not to be differentiated: what is minimized is in `rg.nn.functional`.
"""

from typing import TYPE_CHECKING, Any

from retrograd.metrics.accuracies import (
    Accuracy,
    BalancedAccuracy,
    TopKAccuracy,
    accuracy,
    balanced_accuracy,
    top_k_accuracy,
)
from retrograd.metrics.collection import MetricCollection
from retrograd.metrics.confusion import (
    CohenKappa,
    ConfusionMatrix,
    MatthewsCorrcoef,
    cohen_kappa,
    confusion_matrix,
    matthews_corrcoef,
)
from retrograd.metrics.metric import Metric
from retrograd.metrics.names import unknown
from retrograd.metrics.precision_recall import (
    F1,
    FBeta,
    Jaccard,
    Precision,
    Recall,
    f1,
    fbeta,
    jaccard,
    precision,
    recall,
)
from retrograd.metrics.probabilities import (
    BrierScore,
    CalibrationError,
    LogLoss,
    Perplexity,
    brier_score,
    calibration_error,
    log_loss,
    perplexity,
)
from retrograd.metrics.ranking import (
    average_precision,
    pr_auc,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)
from retrograd.metrics.regression import (
    MAE,
    MAPE,
    MSE,
    R2,
    RMSE,
    ExplainedVariance,
    explained_variance,
    mae,
    mape,
    median_absolute_error,
    mse,
    r2,
    rmse,
)
from retrograd.metrics.running_areas import ROCAUC, AveragePrecision
from retrograd.metrics.statistics import Mean, RunningStatistics

if not TYPE_CHECKING:  # a type checker knows all names there are

    def __getattr__(name: str) -> Any:
        raise unknown(__name__, name, __all__)


__all__ = [
    "F1",
    "MAE",
    "MAPE",
    "MSE",
    "R2",
    "RMSE",
    "ROCAUC",
    "Accuracy",
    "AveragePrecision",
    "BalancedAccuracy",
    "BrierScore",
    "CalibrationError",
    "CohenKappa",
    "ConfusionMatrix",
    "ExplainedVariance",
    "FBeta",
    "Jaccard",
    "LogLoss",
    "MatthewsCorrcoef",
    "Mean",
    "Metric",
    "MetricCollection",
    "Perplexity",
    "Precision",
    "Recall",
    "RunningStatistics",
    "TopKAccuracy",
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "brier_score",
    "calibration_error",
    "cohen_kappa",
    "confusion_matrix",
    "explained_variance",
    "f1",
    "fbeta",
    "jaccard",
    "log_loss",
    "mae",
    "mape",
    "matthews_corrcoef",
    "median_absolute_error",
    "mse",
    "perplexity",
    "pr_auc",
    "precision",
    "precision_recall_curve",
    "r2",
    "recall",
    "rmse",
    "roc_auc",
    "roc_curve",
    "top_k_accuracy",
]
