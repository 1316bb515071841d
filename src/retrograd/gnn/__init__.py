"""Learning on graphs: graphs of any structure, one compilation for all of them."""

from typing import TYPE_CHECKING

from retrograd.gnn.attention import GATConv
from retrograd.gnn.batching import batch, content_key, rows_of, unbatch
from retrograd.gnn.cells import GRU, SumCell, TreeLSTM
from retrograd.gnn.convert.edge_lists import (
    from_edge_index,
    from_edge_list,
    from_table,
    to_edge_index,
)
from retrograd.gnn.convert.networkx import from_networkx, to_networkx
from retrograd.gnn.dag import Edge, dag_scan, levels, topological_order
from retrograd.gnn.dagnet import DagNet, NodeGradients
from retrograd.gnn.dropout import EdgeDropout, drop_edges, keep_edges
from retrograd.gnn.edits import Route, Routing, contract_edge, merge_nodes, remove_node
from retrograd.gnn.graph import Graph
from retrograd.gnn.labels import LabelEmbedding
from retrograd.gnn.layers import (
    GatedConv,
    GCNConv,
    GINConv,
    GraphConv,
    RelationalConv,
    SAGEConv,
    gcn_norm,
)
from retrograd.gnn.losses import (
    classification_loss,
    link_prediction_loss,
    link_scores,
    matching_loss,
    negative_edges,
    regression_loss,
    sinkhorn,
)
from retrograd.gnn.message_passing import message_pass
from retrograd.gnn.names import Names
from retrograd.gnn.positional_encoding import laplacian_eigenvectors, random_walk_features
from retrograd.gnn.readouts import AttentionReadout, readout
from retrograd.gnn.sampling import (
    RunningBaseline,
    hard_choice,
    log_probability,
    reinforce_loss,
    sample_choice,
    soft_choice,
)
from retrograd.gnn.sparse import CSR
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "AttentionReadout",
    "CSR",
    "DagNet",
    "Edge",
    "EdgeDropout",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GRU",
    "GatedConv",
    "Graph",
    "GraphConv",
    "LabelEmbedding",
    "Names",
    "NodeGradients",
    "RelationalConv",
    "Route",
    "Routing",
    "RunningBaseline",
    "SAGEConv",
    "SumCell",
    "TreeLSTM",
    "batch",
    "classification_loss",
    "content_key",
    "contract_edge",
    "dag_scan",
    "drop_edges",
    "from_edge_index",
    "from_edge_list",
    "from_networkx",
    "from_table",
    "gcn_norm",
    "hard_choice",
    "keep_edges",
    "laplacian_eigenvectors",
    "levels",
    "link_prediction_loss",
    "link_scores",
    "log_probability",
    "matching_loss",
    "merge_nodes",
    "message_pass",
    "negative_edges",
    "random_walk_features",
    "readout",
    "regression_loss",
    "reinforce_loss",
    "remove_node",
    "rows_of",
    "sample_choice",
    "sinkhorn",
    "soft_choice",
    "to_edge_index",
    "to_networkx",
    "topological_order",
    "unbatch",
]
