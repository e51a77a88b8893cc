package spool

import (
	"beeyard"
)

func refused(t *beeyard.Task, why string) error {
	return &beeyard.Error{Op: "enqueue", ID: t.ID, Err: beeyard.Because(beeyard.ErrUsage, why)}
}

// checkTask is the native door's check of a whole task.
func checkTask(t *beeyard.Task) error {
	if err := beeyard.CheckID("task", t.ID); err != nil {
		return err
	}
	if err := beeyard.CheckType(t.Type); err != nil {
		return err
	}
	for _, d := range t.DependsOn {
		if err := beeyard.CheckID("dependency", d); err != nil {
			return err
		}
	}
	if err := beeyard.CheckStoredID(t.RunID); err != nil {
		return err
	}
	text := append([]string{t.CreatedBy, t.TierHint, t.Deadline, t.Ext.UID}, t.Ext.Labels...)
	text = append(text, t.Ext.Refs...)
	if h := t.Ext.Hold; h != nil {
		text = append(text, h.By, h.Reason, h.At)
	}
	for _, s := range text {
		if !beeyard.ValidText(s) {
			return refused(t, "it holds text that is not UTF-8, or NUL: "+beeyard.Quote(s))
		}
	}
	for _, at := range []struct{ key, value string }{
		{"created_at", t.CreatedAt}, {"not_before", t.Ext.NotBefore}, {"deadline", deadlineOf(t)},
	} {
		if _, ok := beeyard.ParseTime(at.value); !ok && at.value != "" {
			return refused(t, at.key+" is not an RFC 3339 time: "+beeyard.Quote(at.value))
		}
	}
	switch e := t.Ext; {
	case e.OnDeadline != "" && e.OnDeadline != "fail":
		return refused(t, `on_deadline is "fail" or nothing`)
	case e.MaxAttempts < 0, e.MaxDeaths < 0, e.Timeout < 0, e.Backoff < 0:
		return refused(t, "limits and durations are not negative")
	}
	return nil
}

// deadlineOf is the deadline where something acts on it; elsewhere it is text
// for people.
func deadlineOf(t *beeyard.Task) string {
	if t.Ext.OnDeadline == "" {
		return ""
	}
	return t.Deadline
}
