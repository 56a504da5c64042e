package textfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// CheckJSONL returns an error if the file begins with an array or with an object of several lines, as other programs
// write JSON. The error says how to make each row one line. CheckJSONL looks at the beginning of the file, but reads
// nothing.
func (f *File) CheckJSONL() error {
	head, _ := f.Peek(Buffer) // an error occurs again when the file is read
	head = bytes.TrimSpace(head)
	if bytes.HasPrefix(head, []byte("[")) {
		return errors.New("it is a JSON array, but each line must be one object: convert it with jq -c '.[]' FILE > FILE.jsonl")
	}
	first, _, more := bytes.Cut(head, []byte("\n"))
	decode := func(b []byte) error { return json.NewDecoder(bytes.NewReader(b)).Decode(new(json.RawMessage)) }
	if whole := decode(head); more && decode(first) == io.ErrUnexpectedEOF && (whole == nil || whole == io.ErrUnexpectedEOF) {
		return errors.New("its first JSON object has several lines, but each line must be one object: convert it with jq -c . FILE > FILE.jsonl")
	}
	return nil
}
