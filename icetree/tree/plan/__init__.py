"""From a root and a predicate to tasks, with the deletes that apply to each."""
