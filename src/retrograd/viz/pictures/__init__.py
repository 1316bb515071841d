"""Static pictures of graphs: as SVG, and what is made of that."""
