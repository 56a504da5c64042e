package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
)

// checkAddr returns an error unless a flag's address is a host and a port.
func checkAddr(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return usagef("--%s must be a host and a port, such as 127.0.0.1:8080, or 127.0.0.1:0 for a free port, got %q", flag, addr)
	}
	return nil
}

// listenOn listens on a flag's address.
func listenOn(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if wrong := (*net.OpError)(nil); errors.As(err, &wrong) { // its text names the address again
		err = text.Reason(wrong.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w: choose another address, or port 0 for a free port", flag, addr, err)
	}
	return l, nil
}

// newServer returns a server for l with up to maxOpen open connections, of which none can wait without end.
func newServer(l net.Listener, h http.Handler, maxOpen int, errors *log.Logger) *http.Server {
	s := &http.Server{
		Handler:           ownNames(l.Addr(), h),
		ErrorLog:          errors,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
	}
	limitConnections(s, maxOpen)
	return s
}

// limitConnections limits the number of open connections to a server. If there are more, it closes the one that has
// waited longest for a request or for the end of a request's header. So connections that send nothing don't keep others
// out. Requests in progress are never cut off: if all connections have one, limitConnections closes the new connection.
func limitConnections(s *http.Server, maxOpen int) {
	var mu sync.Mutex
	open := map[net.Conn]int{} // when a connection began to wait, as a count of changes; 0: a request is being answered
	changes := 0
	s.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		changes++
		switch state {
		case http.StateNew, http.StateIdle:
			open[c] = changes
		case http.StateActive:
			open[c] = 0
		default:
			delete(open, c)
		}
		if state != http.StateNew || len(open) <= maxOpen {
			return
		}
		for other, since := range open {
			if since > 0 && since < open[c] {
				c = other
			}
		}
		delete(open, c)
		c.Close()
	}
}

// isLoopback reports whether addr can be reached only from this machine.
func isLoopback(addr net.Addr) bool {
	a, err := netip.ParseAddrPort(addr.String())
	return err == nil && a.Addr().IsLoopback()
}

// ownNames returns a handler that calls h. If only this machine can reach addr, it refuses requests whose Host isn't
// localhost or a loopback address: a web site could make its name resolve to this machine (DNS rebinding).
func ownNames(addr net.Addr, h http.Handler) http.Handler {
	if !isLoopback(addr) {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() {
			h.ServeHTTP(w, r)
			return
		}
		webpage.IgnoreBody(w, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMisdirectedRequest)
		io.WriteString(w, `{"error":"the Host must be this machine's own, such as localhost"}`+"\n")
	})
}
