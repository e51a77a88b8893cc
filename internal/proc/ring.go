package proc

import "bytes"

// ring keeps the last max bytes of what is added. It takes memory as needed.
type ring struct {
	max  int
	buf  []byte
	next int // where the oldest byte is, once buf is full
}

func (r *ring) add(b []byte) {
	if len(b) >= r.max {
		r.buf = append(r.buf[:0], b[len(b)-r.max:]...)
		r.next = 0
		return
	}
	if room := r.max - len(r.buf); room > 0 {
		n := min(room, len(b))
		r.buf = append(r.buf, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(r.buf[r.next:], b)
		r.next = (r.next + n) % r.max
		b = b[n:]
	}
}

// parts is the content, oldest first, in two pieces.
func (r *ring) parts() (a, b []byte) {
	if len(r.buf) < r.max {
		return r.buf, nil
	}
	return r.buf[r.next:], r.buf[:r.next]
}

func (r *ring) lastLines(n int) string {
	a, b := r.parts()
	all := bytes.TrimRight(append(append([]byte(nil), a...), b...), "\n")
	at := len(all)
	for range n {
		if at = bytes.LastIndexByte(all[:at], '\n'); at < 0 {
			return string(all)
		}
	}
	if n <= 0 {
		return ""
	}
	return string(all[at+1:])
}
