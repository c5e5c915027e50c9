"""`svc webhook`: the receiver's side."""
