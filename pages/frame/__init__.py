"""What every page of the walk shares: the view's state, cached runs, and the parts that pages are put together from."""
