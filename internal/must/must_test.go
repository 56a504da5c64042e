package must

import (
	"errors"
	"fmt"
	"testing"
)

// A recorder keeps what a test would print. Fatal panics in place of ending the test.
type recorder struct {
	testing.TB
	printed string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Errorf(format string, a ...any) { r.printed += fmt.Sprintf(format, a...) }
func (r *recorder) Fatalf(format string, a ...any) { r.Errorf(format, a...); panic("fatal") }
func (r *recorder) Fatal(a ...any)                 { r.Fatalf("%v", a[0]) }

func TestChecks(t *testing.T) {
	f := func(err error) (int, error) { return 7, err }
	bad := errors.New("a bad thing")
	for _, test := range []struct {
		check func(t testing.TB)
		want  string
	}{
		{func(t testing.TB) { Get(f(nil))(t) }, ""},
		{func(t testing.TB) { Get(f(bad))(t) }, "a bad thing"},
		{func(t testing.TB) { Refuse(f(bad))(t, "bad", "thing") }, ""},
		{func(t testing.TB) { Refuse(f(bad))(t, "bad", "good") }, `got error "a bad thing", want one with "good"`},
		{func(t testing.TB) { Refuse(f(nil))(t, "bad") }, `got no error, want one with ["bad"]`},
		{func(t testing.TB) { Have(t, "a good thing", "good", "thing") }, ""},
		{func(t testing.TB) { Have(t, "a good thing", "good", "bad") }, "got\na good thing\nwant \"bad\" in it"},
		{func(t testing.TB) { Lack(t, "a good thing", "bad", "worse") }, ""},
		{func(t testing.TB) { Lack(t, "a good thing", "bad", "good") }, "got\na good thing\nwant no \"good\" in it"},
		{func(t testing.TB) { Match(t, nil, "") }, ""},
		{func(t testing.TB) { Match(t, bad, "") }, "a bad thing"},
		{func(t testing.TB) { Match(t, nil, "bad") }, `got no error, want one with ["bad"]`},
	} {
		r := &recorder{}
		func() {
			defer func() { recover() }()
			test.check(r)
		}()
		if r.printed != test.want {
			t.Errorf("got %q, want %q", r.printed, test.want)
		}
	}
	if Match(t, nil, "") || !Match(t, bad, "bad") {
		t.Error("Match must report whether an error is wanted")
	}
	if Get(f(nil))(t) != 7 {
		t.Error("Get must return the value")
	}
}
