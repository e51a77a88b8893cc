package spool

import (
	"fmt"
	"sort"

	"beeyard"
	"beeyard/internal/durable"
)

// readFollowUps reads what was enqueued under the claim of id in D, oldest
// first, and the names it lies under. What cannot be read as a task is left
// where it is and reported: a settle must not hang on it.
func (r *Run) readFollowUps(dir durable.Dir, id string) (tasks []*beeyard.Task, names []string, err error) {
	type next struct {
		name string
		task *beeyard.Task
	}
	var all []next
	err = dir.Each(func(e durable.Entry) bool {
		if i, tag, _ := parseEntry(e.Name); tag == tagNext && i == id {
			all = append(all, next{name: e.Name})
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list follow-ups: %w", err)
	}
	for i := range all {
		data, _, err := dir.ReadFile(all[i].name, beeyard.MaxTaskBytes)
		if missing(err) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read follow-up: %w", err)
		}
		if all[i].task, err = parseAny(data); err != nil {
			r.note("follow-up %s of %s is no task and is left out: %v", all[i].name, beeyard.Quote(id), err)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].task, all[j].task
		if a == nil || b == nil {
			return b == nil && a != nil
		}
		if a.CreatedAt != b.CreatedAt {
			return a.CreatedAt < b.CreatedAt
		}
		return a.ID < b.ID
	})
	for _, n := range all {
		if n.task != nil {
			tasks, names = append(tasks, n.task), append(names, n.name)
		}
	}
	return tasks, names, nil
}

// parseAny reads a body whose id is not known from its name.
func parseAny(data []byte) (*beeyard.Task, error) {
	t, err := beeyard.DecodeTask(data)
	if err != nil {
		return nil, err
	}
	return parseTask(data, t.ID)
}
