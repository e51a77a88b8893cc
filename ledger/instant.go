package ledger

import (
	"strings"
	"time"
)

// ParseTime reads a time as an instant: any offset, Z or z, T, t or a space, 0 to
// 9 fraction digits and more. A time without an offset is UTC, as the older
// engine takes it, so that both give one verdict on a lease.
func ParseTime(s string) (t time.Time, ok bool) {
	if len(s) > 64 || len(s) < len("2006-01-02") {
		return time.Time{}, false
	}
	date, clock := s[:10], ""
	if len(s) > 10 {
		if !strings.ContainsRune("Tt ", rune(s[10])) {
			return time.Time{}, false
		}
		clock = s[11:]
	}
	clock, zone := splitZone(clock)
	if clock == "" {
		if len(s) > 10 {
			return time.Time{}, false
		}
		clock = "00:00:00"
	}
	if len(clock) == len("15:04") {
		clock += ":00"
	}
	whole, frac, dotted := strings.Cut(strings.Replace(clock, ",", ".", 1), ".")
	if dotted {
		if frac == "" || strings.Trim(frac, "0123456789") != "" {
			return time.Time{}, false
		}
		whole += "." + frac[:min(len(frac), 9)]
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", date+"T"+whole+zone)
	return t, err == nil
}

// splitZone takes the offset off a time of day and spells it as RFC 3339 does.
func splitZone(clock string) (rest, zone string) {
	if n := len(clock); n > 0 && (clock[n-1] == 'Z' || clock[n-1] == 'z') {
		return clock[:n-1], "Z"
	}
	i := strings.LastIndexAny(clock, "+-")
	if i < 0 {
		return clock, "Z"
	}
	rest, zone = clock[:i], clock[i:]
	switch {
	case len(zone) == len("+07"):
		zone += ":00"
	case len(zone) == len("+0700"):
		zone = zone[:3] + ":" + zone[3:]
	}
	return rest, zone
}

// FormatTime spells a time the way both engines and every version of Python's
// parser read it: to the second, with a numeric offset.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-07:00") }

// Now is the time of an operation. Text is what the ledger stores; the older
// engine stores what it was given, be it a time or not.
type Now struct {
	Text string
	at   time.Time
	ok   bool
}

// At is the Now of a clock.
func At(t time.Time) Now { return Now{Text: FormatTime(t), at: t, ok: true} }

// NowText is the Now that a caller gave as text.
func NowText(text string) Now {
	at, ok := ParseTime(text)
	return Now{Text: text, at: at, ok: ok}
}

// Time is the instant; ok is false when the text is none.
func (n Now) Time() (t time.Time, ok bool) { return n.at, n.ok }
