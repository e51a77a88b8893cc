package main

import (
	"strings"
	"time"
)

// setting is one thing that can be configured: by flag, by environment
// variable, in beeyard.yaml, in the user's own file, or not at all.
type setting struct {
	key  string // in the file; dots nest: worker.poll_interval
	kind string // string, int, duration, bool, list, map
	def  string
	doc  string
}

// env is the setting's variable: worker.poll_interval → BEEYARD_WORKER_POLL_INTERVAL.
func (s setting) env() string {
	return "BEEYARD_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// settings are all that the configuration file may hold. The order is that of
// `config show`. It is a function: a table of this size at package level is
// work that every start would do.
func settings() []setting {
	return []setting{
		{"root", "string", "", "folder that holds the runs"},
		{"run", "string", "", "the run that commands use when none is named"},
		{"worker.id", "string", "", "worker id; default <host>-<pid>"},
		{"worker.handler", "string", "", "program that does one task"},
		{"worker.handler_mode", "string", "process", "process: one a task; lines: one that stays"},
		{"worker.concurrency", "int", "1", "tasks at once"},
		{"worker.poll_interval", "duration", "5s", "how often to look when no event comes"},
		{"worker.heartbeat_interval", "duration", "30s", "how often to beat"},
		{"worker.stale_after", "duration", "5m0s", "silence after which a claim whose death cannot be proven is taken"},
		{"worker.drain_timeout", "duration", "30s", "how long handlers may run on after TERM"},
		{"worker.grace", "duration", "10s", "between TERM and KILL of a handler's tree"},
		{"worker.timeout", "duration", "0s", "a task's longest run where it names none; 0: none"},
		{"worker.max_attempts", "int", "3", "failed settles before a task fails"},
		{"worker.max_deaths", "int", "3", "worker deaths before a task fails"},
		{"worker.backoff", "duration", "10s", "first delay of a retry, doubled each time"},
		{"worker.max_backoff", "duration", "10m0s", "longest delay of a retry"},
		{"worker.log_cap", "int", "10485760", "bytes of a task's log; head and tail are kept"},
		{"worker.env", "list", "", "further environment variables that handlers get"},
		{"worker.sandbox", "string", "off", "off, or on: handlers may write to the run only and have no network"},
		{"tiers", "list", "haiku,sonnet,opus", "model tiers, cheapest first; exit 77 moves a task to the next"},
		{"ledgers", "list", "", "ledger files that doctor and the board look at"},
	}
}

func findSetting(key string) (setting, bool) {
	for _, s := range settings() {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// check reads v as the setting's kind; "" is not set.
func (s setting) check(v string) error {
	switch s.kind {
	case "int":
		_, err := parseCount(v)
		return err
	case "duration":
		var d time.Duration
		return parseWait(v, &d)
	case "bool":
		_, err := parseBool(v)
		return err
	}
	return nil
}
