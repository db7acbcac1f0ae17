"""Other systems' files, one module per format. Reads and writes them; what a plan is stays core's business."""
