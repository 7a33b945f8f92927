"""Generated from protos/ by scripts/proto; never edited by hand."""
