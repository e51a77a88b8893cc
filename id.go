package beeyard

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxIDBytes bounds what is accepted on disk: with the suffixes that the file
// protocol adds, a name stays under the 255 bytes of common file systems.
const (
	MaxIDBytes       = 240
	MaxNativeIDBytes = 128
)

// nativeChars is ^[A-Za-z0-9][A-Za-z0-9._-]*$ by hand: a compiled pattern is
// package-level work that every start of the program would pay for.
func nativeChars(id string) bool {
	for i := range len(id) {
		c := id[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return id != ""
}

// deviceNames are what Windows takes for devices whatever their extension. A
// run may be unpacked there.
var deviceNames = map[string]bool{
	"con": true, "prn": true, "aux": true, "nul": true, "conin$": true, "conout$": true,
}

func isDevice(id string) bool {
	base, _, _ := strings.Cut(strings.ToLower(id), ".")
	if deviceNames[base] {
		return true
	}
	if len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) {
		return base[3] >= '0' && base[3] <= '9'
	}
	return false
}

// CheckID is the one validator of new ids (task, worker, run, dependency) at
// every native door. what names the kind of id in the message. The error is
// ErrUsage.
func CheckID(what, id string) error {
	bad := func(why string) error {
		return &Error{Op: "check " + what + " id", ID: id, Err: Because(ErrUsage, why),
			Hint: "an id starts with a letter or digit and holds letters, digits, '.', '_' and '-', 128 at most"}
	}
	switch {
	case id == "":
		return bad("it is empty")
	case len(id) > MaxNativeIDBytes:
		return bad("it is longer than 128 characters")
	case !nativeChars(id):
		return bad("it has a character that ids may not have")
	case strings.Contains(id, ".."):
		return bad("it contains '..'")
	case strings.HasSuffix(strings.ToLower(id), ".json"):
		return bad("it ends in '.json', which task files add themselves")
	case isDevice(id):
		return bad("it is a device name on some systems")
	}
	return nil
}

// CheckStoredID accepts what older programs accept: 1 to 240 bytes of UTF-8
// without slash, NUL or control characters, and not "." or "..". It is the
// rule on disk and at the compatibility commands. The error is ErrUsage.
func CheckStoredID(id string) error {
	ok := id != "" && len(id) <= MaxIDBytes && id != "." && id != ".." && utf8.ValidString(id)
	if ok {
		for _, r := range id {
			if r == '/' || r < 0x20 || (r >= 0x7f && r <= 0x9f) {
				ok = false
				break
			}
		}
	}
	if !ok {
		return &Error{Op: "check id", ID: id, Err: Because(ErrUsage, "it cannot be a file name of this run"),
			Hint: "1 to 240 bytes of UTF-8 without '/' or control characters"}
	}
	return nil
}

// CheckType accepts any text that fits a comma-separated filter on one line.
func CheckType(t string) error {
	if t == "" || len(t) > 1024 || !utf8.ValidString(t) || strings.ContainsAny(t, ",\n\r\x00") {
		return &Error{Op: "check task type", ID: t,
			Err: Because(ErrUsage, "a type is 1 to 1024 bytes of text without comma or line break")}
	}
	return nil
}

// Fold is the form in which two ids count as one. Native ids are ASCII, so
// lower case is all of NFC and case folding that they need.
func Fold(id string) string { return strings.ToLower(id) }

// Quote shows text that somebody else wrote on one line, shortened.
func Quote(s string) string {
	const most = 160
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strconv.Quote(s)
}
