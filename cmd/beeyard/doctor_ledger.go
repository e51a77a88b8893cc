package main

import (
	"beeyard/ledger"
	"beeyard/spool"
)

// ledgerFindings are what is wrong with the ledgers that the configuration names.
func (p *program) ledgerFindings(c *config) []spool.Finding {
	var all []spool.Finding
	for _, path := range c.list("ledgers", nil) {
		f, err := ledger.OpenFile(path, ledger.Native)
		var problems []ledger.Problem
		if err == nil {
			problems, err = ledger.Check(f, ledger.At(p.clock.Now()))
		}
		if err != nil {
			problems = []ledger.Problem{{Code: "ledger-unreadable", Bad: true, Detail: err.Error()}}
		}
		for _, pr := range problems {
			severity := spool.Info
			if pr.Bad {
				severity = spool.Bad
			}
			all = append(all, spool.Finding{Code: pr.Code, Severity: severity, Subject: path, Detail: pr.Detail, Fix: pr.Next})
		}
	}
	return all
}
