"""What stands beside the functions and transforms of `rg`: debugging, profiles, dashboards."""
