package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// Open returns the trained model of a run folder. The rule that it learned is one of Heed's own or of those given;
// another rule's model answers as well, without its Answer to check inputs, but not if the rule had a Spell or a Read.
// A rule of the same name must be the one that was learned, which Open sees by all but the functions, and by whether it
// has a Spell or a Read: what these do, and Answer, it can't see.
//
// A folder that someone else made is input like any other: what config.json says is judged before memory is spent on
// it.
func Open(dir string, rules ...data.Rule) (*Model, error) { return open(os.DirFS(dir), dir, rules) }

// OpenFS is Open of a run folder that is the root of a file system, such as an embedded one.
func OpenFS(fsys fs.FS, rules ...data.Rule) (*Model, error) { return open(fsys, ".", rules) }

func open(fsys fs.FS, dir string, rules []data.Rule) (*Model, error) {
	c, err := readConfig(fsys, dir, rules)
	if err != nil {
		return nil, err
	}
	m, err := newModel(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, ConfigFile), err)
	}
	if err := m.load(fsys, dir, c); err != nil {
		return nil, err
	}
	return m, nil
}

// Load sets the parameters to the weights of a run folder. A folder without weights is an error that wraps
// ErrNoWeights; weights that aren't of the folder's config.json or, where the run is finished, of its summary.json are
// one too. On an error, no parameter has changed.
func (m *Model) Load(dir string) error {
	fsys := os.DirFS(dir)
	c, err := parseFile(fsys, dir)
	if err != nil {
		return err
	}
	return m.load(fsys, dir, c)
}

// runKey is what the weights of a run have in their metadata: the id of its Config.
const runKey = "heed.run"

// load sets the parameters to the weights of a folder of that config.json.
func (m *Model) load(fsys fs.FS, dir string, c Config) error {
	if _, err := weightsOf(fsys, dir, c); err != nil {
		return err
	}
	f, size, err := openRegular(fsys, WeightsFile)
	if err == nil {
		defer f.Close()
		_, err = m.Params.Decode(f, size, layers.LoadOptions{})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	return nil
}

// weightsOf returns the header of a folder's weights. It is an error if they say that they are of another config.json,
// if the folder's summary is of another config.json, or if its checksum of the weights, which loading verifies, isn't
// theirs.
func weightsOf(fsys fs.FS, dir string, c Config) (*safetensors.File, error) {
	return settled(func() (*safetensors.File, error) { return compareWeights(fsys, dir, c) })
}

func compareWeights(fsys fs.FS, dir string, c Config) (*safetensors.File, error) {
	f, size, err := openRegular(fsys, WeightsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %w", dir, ErrNoWeights)
	}
	var header *safetensors.File
	if err == nil {
		defer f.Close()
		header, err = safetensors.NewFile(f, size)
	}
	if err == nil {
		if of, ok := header.Metadata[runKey]; ok && of != c.id() {
			err = fmt.Errorf("they are the weights of another run: of %.24q…, and the folder has %.24q…: one of them was changed or swapped, restore it", of, c.id())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	s, err := readSummary(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) { // the run isn't finished
		return header, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := readRegular(fsys, ConfigFile, maxConfig)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, ConfigFile), err)
	case s.WeightsSHA256 != "" && s.WeightsSHA256 != header.Checksum: // a summary of an older heed has none
		return nil, fmt.Errorf("%w; without %[2]s, the weights open as they are", misfit(dir, SummaryFile, WeightsFile), SummaryFile)
	case s.SHA256[ConfigFile] != hexSum(content):
		return nil, misfit(dir, SummaryFile, ConfigFile)
	}
	return header, nil
}

// openRegular opens a file that is no pipe, say, whose end would never come.
func openRegular(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("it must be a regular file, got %v", info.Mode())
	}
	f, err := fsys.Open(name)
	return f, info.Size(), err
}

// readRegular reads a regular file of at most so many bytes.
func readRegular(fsys fs.FS, name string, most int64) ([]byte, error) {
	f, size, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", size, most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// maxConfig is the most bytes that a config.json may have: an alphabet of every character that has a meaning fits in.
const maxConfig = 1_000_000

// ReadConfig reads and checks a run folder's config.json. The functions of its rule are those of the rule of that name,
// which is one of those given or of Heed's own; they are nil if there is none.
func ReadConfig(dir string, rules ...data.Rule) (Config, error) {
	return readConfig(os.DirFS(dir), dir, rules)
}

func readConfig(fsys fs.FS, dir string, rules []data.Rule) (Config, error) {
	c, err := parseFile(fsys, dir)
	if err != nil {
		return Config{}, err
	}
	if err = c.check(true); err == nil {
		err = c.readTokenizers(fsys)
	}
	if err == nil {
		_, err = data.NewCoder(c.Task)
	}
	if err == nil {
		err = c.complete(rules)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", filepath.Join(dir, ConfigFile), err)
	}
	return c, nil
}

// parseFile reads a folder's config.json, and doesn't check what it says.
func parseFile(fsys fs.FS, dir string) (Config, error) {
	path := filepath.Join(dir, ConfigFile)
	content, err := readRegular(fsys, ConfigFile, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("%s isn't a run folder: it has no %s; heed train makes one", dir, ConfigFile)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return Config{}, fmt.Errorf("%s isn't a run folder, but a file: give the folder that heed train made", dir)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s isn't a run folder that can be read: %s: %w", dir, path, err)
	}
	c, err := parseConfig(content)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig reads JSON, in which every key must be one of a Config, in its case, and none may come twice.
func parseConfig(content []byte) (c Config, err error) {
	err = jsonkeys.Check(content, jsonkeys.Lower)
	var version struct {
		Format int `json:"format"`
	}
	if err == nil {
		err = json.Unmarshal(content, &version)
	}
	if err != nil {
		if errors.As(err, new(*json.SyntaxError)) {
			err = fmt.Errorf("it isn't whole JSON (%w): restore it, or train again", err)
		}
		return c, readable(err)
	}
	switch {
	case version.Format < format:
		return c, fmt.Errorf("this run folder is of an older format, %d, and heed reads format %d: train it again", version.Format, format)
	case version.Format > format:
		return c, fmt.Errorf("this run folder is of a newer format, %d, and heed reads format %d: update heed", version.Format, format)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	var file configFile
	if err := d.Decode(&file); err != nil {
		return c, readable(err)
	}
	return file.Config, file.check(content)
}

// readable returns an error of decoding JSON that says what a setting must be without Go's types.
func readable(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		if err != nil && strings.Contains(err.Error(), "json: unknown field ") { // of which there is no type
			err = errors.New(strings.Replace(err.Error(), "json: unknown field ", "unknown key ", 1))
		}
		return err
	}
	want := "an object"
	switch kind := wrong.Type.Kind(); {
	case kind == reflect.String || wrong.Type == reflect.TypeFor[layers.Activation]():
		want = "a string"
	case kind == reflect.Int:
		want = "a whole number of at most 64 bits"
	case kind == reflect.Uint64:
		want = "a whole number of at most 64 bits, not negative"
	case kind == reflect.Float64:
		want = "a number that 64 bits hold"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice:
		want = "an array"
	}
	where := cmp.Or(strings.NewReplacer("Config.", "", "plain.", "").Replace(wrong.Field), "it") // which are embedded, and no part of the path in JSON
	text := fmt.Sprintf("%s must be %s, got %s", where, want, wrong.Value)
	return errors.New(strings.Replace(err.Error(), wrong.Error(), text, 1))
}

// id returns a name for all that decides a run, by which its files know each other. The data may be moved, and training
// may be told to go on for longer: neither is part of it.
func (c Config) id() string {
	c.moveTo(Data{})
	c.From.Dir = ""
	c.Training.MaxEpochs, c.Training.Stopping.Patience = 0, 0
	c.Task.About, c.Task.Example = "", ""
	return ConfigFile + " " + jsonSum(c)
}

// spells reports whether a rule has functions that its data alone don't tell.
func spells(r data.Rule) bool { return r.Spell != nil || r.Read != nil }

// complete gives the configuration the functions of its rule.
func (c *Config) complete(rules []data.Rule) error {
	rule := c.Task
	if i := slices.IndexFunc(rules, func(r data.Rule) bool { return r.Name == rule.Name }); i >= 0 {
		rule = rules[i]
	} else if slices.Contains(data.Names(), rule.Name) {
		var err error
		if rule, err = data.Named(rule.Name, rule.MaxLen); err != nil {
			return err
		}
	} else if c.Spelled {
		return fmt.Errorf("the task %s isn't one of Heed's own, and its model needs the rule's Spell and Read: give the rule to Open", rule.Name)
	}
	c.Task.About, c.Task.Example = rule.About, rule.Example
	if !same(rule, c.Task) || c.Spelled != spells(rule) {
		return fmt.Errorf("the run learned another task %s than the one known by that name: give its rule to Open, or train it again", rule.Name)
	}
	c.Task = rule
	return nil
}
