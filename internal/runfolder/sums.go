package runfolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Sum returns the SHA-256 of a content, in hexadecimal.
func Sum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// JSONSum returns the SHA-256 of a value's JSON, or "" if the value can't be encoded.
func JSONSum(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return Sum(content)
}

// SameJSON reports whether two values have the same JSON. A value that can't be encoded is like no other.
func SameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Unsealed is a placeholder for the checksum in a configuration: see Seal.
var Unsealed = strings.Repeat("0", 2*sha256.Size)

// Seal replaces the last Unsealed in content with the checksum of content.
func Seal(content []byte) { copy(content[bytes.LastIndex(content, []byte(Unsealed)):], Sum(content)) }

// CheckSeal returns an error if content, which has the checksum sum, was changed after Seal. If sum is empty, content
// passes.
func CheckSeal(content []byte, sum string) error {
	if sum == "" {
		return nil
	}
	if len(sum) != len(Unsealed) || Sum(bytes.ReplaceAll(content, []byte(sum), []byte(Unsealed))) != sum {
		return errors.New("its content doesn't match its sha256: it was changed after heed wrote it; restore it")
	}
	return nil
}

// These parts of a summary, without white space, don't count for SummarySum.
var (
	summarySeconds = regexp.MustCompile(`"seconds":[^,}]*`)
	summarySum     = regexp.MustCompile(`,"` + regexp.QuoteMeta(SummaryFile) + `":"[^"]*"`)
)

// SummarySum returns the checksum of a summary's JSON, which the summary itself lists under its own name. White space,
// this checksum and the seconds, which differ from run to run, don't count.
func SummarySum(content []byte) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, content); err != nil {
		return ""
	}
	return Sum(summarySum.ReplaceAll(summarySeconds.ReplaceAll(compact.Bytes(), []byte(`"seconds":0`)), nil))
}

// A misfitError reports two files of a folder that don't match.
type misfitError struct{ dir, a, b string }

func (e *misfitError) Error() string {
	return fmt.Sprintf("%s and %s in %s don't belong together: one of them was changed or swapped; restore it", e.a, e.b, e.dir)
}

// Misfit returns the error that two files of the folder don't match. Settled reads again after it.
func (f Folder) Misfit(a, b string) error { return &misfitError{f.Dir, a, b} }

// Settled calls read, which reads files of a run folder. If two files don't match, it calls read again, up to three
// times in all: a training may have written to the folder in between.
func Settled[T any](read func() (T, error)) (v T, err error) {
	for range 3 {
		if v, err = read(); !errors.As(err, new(*misfitError)) {
			break
		}
	}
	return v, err
}
