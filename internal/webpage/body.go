package webpage

import (
	"net/http"
	"time"
)

// unread is how long a server waits for a body that nobody reads.
const unread = time.Second

// IgnoreBody is for a request whose body the handler doesn't read. It lets the server answer at once, and close the
// connection a second later at the latest. Otherwise, before it answers, the server would wait for a body that may
// never arrive. Call it before the answer is written.
func IgnoreBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(unread))
	}
}

// ReadBody withdraws IgnoreBody. The body must arrive within a time.
func ReadBody(w http.ResponseWriter, within time.Duration) {
	w.Header().Del("Connection")
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
}
