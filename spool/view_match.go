package spool

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"beeyard"
)

// matcher is a query made ready.
type matcher struct {
	q      beeyard.Query
	filter beeyard.Filter
	states map[beeyard.State]bool // empty: every state
}

func newMatcher(q beeyard.Query) (*matcher, error) {
	m := &matcher{q: q, filter: beeyard.Filter{Types: q.Types, Tiers: q.Tiers, Labels: q.Labels}, states: map[beeyard.State]bool{}}
	for _, s := range q.States {
		if !slices.Contains(beeyard.States(), s) {
			return nil, &beeyard.Error{Op: "list tasks", ID: string(s), Err: beeyard.Because(beeyard.ErrUsage, "there is no such state"),
				Hint: "states are " + stateNames()}
		}
		m.states[s] = true
	}
	return m, nil
}

func stateNames() string {
	var names []string
	for _, s := range beeyard.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// wants reports whether any of these states is asked for.
func (m *matcher) wants(states ...beeyard.State) bool {
	if len(m.states) == 0 {
		return true
	}
	return slices.ContainsFunc(states, func(s beeyard.State) bool { return m.states[s] })
}

// wantsOpen: some state that only a body tells of is asked for.
func (m *matcher) wantsOpen() bool {
	return m.wants(beeyard.StateReady, beeyard.StateBlocked, beeyard.StateWaiting, beeyard.StateHeld, beeyard.StateClaimed)
}

// byBody reports whether bodies decide what matches.
func (m *matcher) byBody() bool {
	return len(m.q.Types)+len(m.q.Tiers)+len(m.q.Labels) > 0 || m.q.Text != ""
}

// body decides by the body alone.
func (m *matcher) body(t *beeyard.Task) bool {
	return m.filter.Match(t) && (m.q.Text == "" || hasText(t, m.q.Text))
}

// hasText looks in id, type and payload: in the payload as it was written, and
// as it reads where the writer escaped it (Python writes "é" as \u00e9).
func hasText(t *beeyard.Task, text string) bool {
	if strings.Contains(t.ID, text) || strings.Contains(t.Type, text) || bytes.Contains(t.Payload, []byte(text)) {
		return true
	}
	if !bytes.Contains(t.Payload, []byte(`\`)) {
		return false
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(t.Payload))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return false
	}
	return valueHas(v, text)
}

// valueHas: task files are read within a bounded depth (internal/strict), so
// the recursion is bounded too.
func valueHas(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return valueHas(e, text) })
	case map[string]any:
		for k, e := range v {
			if strings.Contains(k, text) || valueHas(e, text) {
				return true
			}
		}
	}
	return false
}
