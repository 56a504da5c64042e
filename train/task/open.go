package task

import (
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
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// Open returns the trained model of a run folder. If the model learned your own rule, pass that rule. Without it, the
// model answers too, but the rule's Answer can't check inputs; and if the rule had a Spell or a Read, Open returns an
// error. Open compares the learned rule with the given one of its name, or with Heed's own. It returns an error if they
// differ in their data or in having a Spell or a Read. It can't compare functions.
//
// The folder may come from someone else: Open checks config.json before it allocates memory for the model. Tokenizers
// must be as tokenizer.ReadOwn expects them.
func Open(dir string, rules ...data.Rule) (*Model, error) { return open(os.DirFS(dir), dir, rules) }

// OpenFS is like Open for a run folder that is the root of a file system, such as an embed.FS.
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

// Load sets the parameters to the weights of a run folder. If the folder has no weights, the error wraps ErrNoWeights.
// Load also returns an error if the weights don't match the folder's config.json or, in a finished run, its
// summary.json. After an error, all parameters have their old values.
func (m *Model) Load(dir string) error {
	fsys := os.DirFS(dir)
	c, err := parseFile(fsys, dir)
	if err != nil {
		return err
	}
	return m.load(fsys, dir, c)
}

// runKey is the key in the metadata of a run's weights. Its value is the id of the run's Config.
const runKey = "heed.run"

// load sets the parameters to the weights of a folder. The argument c is the folder's configuration.
func (m *Model) load(fsys fs.FS, dir string, c Config) error {
	if _, err := weightsOf(fsys, dir, c); err != nil {
		return err
	}
	f, size, err := openRegular(fsys, WeightsFile)
	if err == nil {
		defer f.Close()
		_, err = m.Params.LoadFrom(f, size, layers.LoadOptions{})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	return nil
}

// weightsOf returns the header of a folder's weights. It returns an error if the weights or the summary belong to
// another config.json, or if the summary's checksum of the weights differs from the checksum in their header. Loading
// verifies that checksum.
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
		if id, ok := header.Metadata[runKey]; ok && id != c.id() {
			err = fmt.Errorf("they are the weights of another run, %.24q…; the folder has the run %.24q…: one of them was changed or swapped; restore it", id, c.id())
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
		return nil, fmt.Errorf("%w; without %[2]s, the weights are opened uncompared", misfit(dir, SummaryFile, WeightsFile), SummaryFile)
	case s.SHA256[ConfigFile] != hexSum(content):
		return nil, misfit(dir, SummaryFile, ConfigFile)
	}
	return header, nil
}

// openRegular opens a regular file. Other files, such as pipes, are an error, because reading them might never end.
// Errors don't name the file.
func openRegular(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, text.Reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("it must be a regular file, got %v", info.Mode())
	}
	f, err := fsys.Open(name)
	return f, info.Size(), text.Reason(err)
}

// readRegular reads a regular file. It returns an error if the file has more bytes than most.
func readRegular(fsys fs.FS, name string, most int64) ([]byte, error) {
	f, size, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, fmt.Errorf("it has %d bytes, but at most %d are read", size, most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// maxConfig is the greatest size of a config.json in bytes. An alphabet of all assigned characters fits.
const maxConfig = 1_000_000

// ReadConfig reads and checks a run folder's config.json. It takes the functions of the rule from the given rule of the
// same name, or from Heed's own. If there is none, the functions are nil.
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

// parseFile reads a folder's config.json without checking the settings.
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
		return Config{}, fmt.Errorf("%s can't be read as a run folder: %s: %w", dir, path, err)
	}
	c, err := parseConfig(content)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig decodes a config.json. Unknown keys, keys with other capitals and repeated keys are errors.
func parseConfig(content []byte) (c Config, err error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(content, &version); err != nil {
		if errors.As(err, new(*json.SyntaxError)) {
			err = fmt.Errorf("it isn't complete JSON (%w): restore it, or train again", err)
		}
		return c, readable(err)
	}
	switch {
	case version.Format < format:
		return c, fmt.Errorf("this run folder has the older format %d, and heed reads format %d: train it again", version.Format, format)
	case version.Format > format:
		return c, fmt.Errorf("this run folder has the newer format %d, and heed reads format %d: update heed", version.Format, format)
	}
	var file configFile
	if err := kinds.Decode(content, &file); err != nil {
		return c, readable(err)
	}
	return file.Config, file.check(content)
}

// readable rewrites an error of decoding JSON so that it doesn't name Go's types.
func readable(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
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
		want = "a number that fits in 64 bits"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice:
		want = "an array"
	}
	where := cmp.Or(strings.NewReplacer("Config.", "", "plain.", "").Replace(wrong.Field), "it") // embedded structs aren't part of the path in JSON
	text := fmt.Sprintf("%s must be %s, got %s", where, want, wrong.Value)
	return errors.New(strings.Replace(err.Error(), wrong.Error(), text, 1))
}

// id returns a name for the settings that determine a run's result. The files of a run have the same id. The paths of
// the data, MaxEpochs and Patience aren't part of the id, because they may change.
func (c Config) id() string {
	c.moveTo(data.Settings{})
	c.From.Dir = ""
	c.Training.MaxEpochs, c.Training.Stopping.Patience = 0, 0
	c.Task.About, c.Task.Example = "", ""
	return ConfigFile + " " + jsonSum(c)
}

// spells reports whether a rule has a Spell or a Read, which a model needs to answer.
func spells(r data.Rule) bool { return r.Spell != nil || r.Read != nil }

// complete adds the rule's functions to the configuration.
func (c *Config) complete(rules []data.Rule) error {
	rule := c.Task
	if i := slices.IndexFunc(rules, func(r data.Rule) bool { return r.Name == rule.Name }); i >= 0 {
		rule = rules[i]
	} else if slices.Contains(toy.Names(), rule.Name) {
		var err error
		if rule, err = toy.Named(rule.Name, rule.MaxLen); err != nil {
			return err
		}
	} else if c.Spelled {
		return fmt.Errorf("the task %s isn't one of Heed's own, and its model needs the rule's Spell and Read: pass the rule to Open", rule.Name)
	}
	c.Task.About, c.Task.Example = rule.About, rule.Example
	if !same(rule, c.Task) || c.Spelled != spells(rule) {
		return fmt.Errorf("the run's task %s differs from the known task of that name: pass the run's rule to Open, or train it again", rule.Name)
	}
	c.Task = rule
	return nil
}
