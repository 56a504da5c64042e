package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
)

// newService makes a call of heed serve. The function end ends it.
func newService(t *testing.T, args ...string) (url string, end func() called) {
	t.Helper()
	return background(t, regexp.MustCompile(` answers on (http://\S+)/\n$`), append([]string{"serve"}, args...)...)
}

// get sends a request for a host: POST if body isn't empty, otherwise GET.
func get(t *testing.T, url, body, host string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if body != "" {
		r, err = http.NewRequest("POST", url, strings.NewReader(body))
	}
	must.Do(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Host = host
	got := must.Get(http.DefaultClient.Do(r))(t)
	defer got.Body.Close()
	content := must.Get(io.ReadAll(got.Body))(t)
	return got.StatusCode, string(content)
}

// A service gives the same answers as heed predict, but only to requests for its own name. A signal ends it with status
// 0.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run\x1b[31m")
	succeed(t, small("--task=copy", "--out="+dir)...)
	url, end := newService(t, dir, "--addr=127.0.0.1:0")
	want := fmt.Sprintf(`{"answers":[%s]}`+"\n", strings.TrimSuffix(succeed(t, "predict", dir, "--json", "gorgonia"), "\n"))
	for _, host := range []string{"", "localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:80"} {
		if status, got := get(t, url+"/predict", `{"input": ["gorgonia"]}`, host); status != 200 || got != want {
			t.Errorf("host %q: got %d, %s, want 200, %s", host, status, got, want)
		}
	}
	for _, host := range []string{"example.com", "localhost.example.com:80", "192.0.2.1"} {
		if status, got := get(t, url+"/health", "", host); status != http.StatusMisdirectedRequest || !strings.HasPrefix(got, `{"error":"the Host must be`) {
			t.Errorf("host %q: got %d, %s, want 421 and an error about the Host", host, status, got)
		}
	}
	if status, got := get(t, url+"/v1/models", "", ""); status != 200 || !strings.Contains(got, `"id":"run\u001b[31m"`) {
		t.Errorf("got %d, %s, want the folder's name as the model", status, got)
	}
	fail(t, heed("serve", dir, "--addr="+strings.TrimPrefix(url, "http://")), 1, "address already in use", "choose another address, or port 0")
	got := end()
	if got.code != 0 || got.stderr != "" || got.stdout != strings.ReplaceAll(dir, "\x1b", `\x1b`)+", which learned copy, answers on "+url+"/\nended; requests: 6\n" {
		t.Errorf("the service ends with %+v, want status 0 and 6 requests", got)
	}

	fail(t, heed("serve", filepath.Join(dir, "no")), 1, "there is no such folder")
	must.Do(t, os.Remove(filepath.Join(dir, runfolder.WeightsFile)))
	fail(t, heed("serve", dir), 1, "model.safetensors is missing", "--resume")
	fail(t, heed("serve", dir, "--addr=192.0.2.1:0"), 1, "model.safetensors is missing")
}

// A signal lets a service finish the text that it is writing.
func TestServeEndsWhatItHasTaken(t *testing.T) {
	t.Parallel()
	url, end := newService(t, foxRun(t), "--addr=127.0.0.1:0")
	got := must.Get(http.Post(url+"/generate", "application/json", strings.NewReader(`{"prompt": "The", "tokens": 1024}`)))(t)
	defer got.Body.Close()
	if c := end(); c.code != 0 || !strings.HasSuffix(c.stdout, "ended; requests: 1\n") {
		t.Errorf("the service ends with %+v, want status 0 and 1 request", c)
	}
	body, err := io.ReadAll(got.Body)
	if text := string(body); err != nil || !strings.HasSuffix(text, `event: done`+"\n"+`data: {"reason":"tokens"}`+"\n\n") || strings.Count(text, "event: text") != 1024 {
		t.Errorf("got %d events, %v: …%s, want 1024 and the reason tokens", strings.Count(text, "event: text"), err, text[max(0, len(text)-200):])
	}
}

// A service checks the host name of requests only if no other machine can reach it.
func TestOwnNames(t *testing.T) {
	for addr, want := range map[string]int{"127.0.0.1": 421, "::1": 421, "192.0.2.1": 200, "::": 200} {
		h := ownNames(&net.TCPAddr{IP: net.ParseIP(addr)}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		w := httptest.NewRecorder() // the request below is for example.com
		if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != want {
			t.Errorf("on %s: got %d, want %d", addr, w.Code, want)
		}
	}
}
