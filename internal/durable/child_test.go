package durable

func childWrite(args []string) error { return nil }
func childCalls(args []string) error { return nil }
