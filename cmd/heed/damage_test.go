package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// A byte that changes in a file of a run, finished or interrupted, is an error that names the file and changes nothing,
// or it changes nothing that is printed or written.
func TestFlippedBytes(t *testing.T) {
	flips := 300
	if testing.Short() {
		flips = 10
	}
	base := t.TempDir()
	for _, test := range []struct {
		name, state string
		flips       int
		flags, read []string // what trains and, but for the folder, what only reads
	}{
		{"copy", "interrupted", flips, []string{"--task=copy"}, []string{"eval", "predict abc gorgonia"}},
		{"copy", "finished", flips, []string{"--task=copy"}, []string{"eval", "predict abc gorgonia"}},
		{"text", "interrupted", flips / 10, []string{"--task=text", "--max-len=16", "--data=" + foxText(t)}, []string{"eval", "predict fox", "generate --prompt=The --tokens=20"}},
		{"pairs", "interrupted", flips / 10, append(dataFlags(t, "pairs"), "--task=pairs", "--micro-batches=1", "--decay=40"), []string{"eval", "predict cat"}},
		{"tags", "finished", flips / 10, append(dataFlags(t, "tags"), "--task=tags", "--decay=40"), []string{"eval", "predict cat"}},
		{"text", "finished", flips / 10, []string{"--task=text", "--max-len=16", "--data=" + foxText(t)}, []string{"eval", "predict fox", "generate --prompt=The --tokens=20"}},
	} {
		t.Run(test.state+" "+test.name, func(t *testing.T) {
			at := func(name string) string { return filepath.Join(base, test.state+test.name+name) }
			dir, whole, longer := at(""), at("whole"), at("longer")
			flags := func(dir string) []string { return small(append(test.flags, "--out="+dir)...) }
			succeed(t, flags(whole)...)
			succeed(t, append(flags(longer), "--max-epochs=4")...)
			if test.state == "finished" {
				succeed(t, flags(dir)...)
			} else {
				fail(t, heedContext(cancelled(t, 15), flags(dir)...), 1, "interrupted")
			}
			good := folder(t, dir)
			restore := func() {
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o777)
				for name, content := range good {
					write(t, filepath.Join(dir, name), content)
				}
			}
			var reads [][]string
			var printed []string
			for _, call := range test.read {
				words := strings.Fields(call)
				reads = append(reads, slices.Insert(words, 1, dir))
				printed = append(printed, succeed(t, reads[len(reads)-1]...))
			}
			rng := rand.New(rand.NewPCG(1, 1))
			for _, file := range slices.Sorted(maps.Keys(good)) {
				if file == task.TimesFile || file == task.ReportFile { // on which nothing depends
					continue
				}
				seen, ends := 0, 0
				for n := range test.flips {
					b := []byte(good[file])
					i := rng.IntN(len(b))
					if n%2 == 0 {
						b[i] ^= 1 << rng.IntN(8)
					} else {
						b[i] ^= byte(1 + rng.IntN(255))
					}
					write(t, filepath.Join(dir, file), string(b))
					refused := false
					for k, call := range reads {
						if k == 0 && n%5 > 0 { // eval makes data
							continue
						}
						if c := heed(call...); c.code != 0 {
							fail(t, c, c.code, file)
							refused = true
						} else if c.stdout != printed[k] {
							t.Errorf("with byte %d of %s now %q, %v prints %q, want %q", i, file, b[i], call, c.stdout, printed[k])
						}
					}
					for _, more := range []string{"", "--max-epochs=4"} {
						if ends > test.flips/10 || more != "" && n%5 > 0 { // each takes as long as a run
							continue
						}
						call, want := []string{"train", "--resume=" + dir}, whole
						if more != "" {
							call, want = append(call, more), longer
						}
						before := folder(t, dir)
						c := heed(call...)
						switch {
						case c.code == 0:
							sameRun(t, dir, want)
							ends++
						case strings.Contains(c.stderr, "is finished: there is nothing to resume"):
							fail(t, c, 1)
						default:
							fail(t, c, c.code, file)
							refused = true
						}
						after := folder(t, dir)
						if more != "" { // which config.json says before the checkpoint is read
							delete(before, task.ConfigFile)
							delete(after, task.ConfigFile)
						}
						if c.code != 0 && !maps.Equal(after, before) {
							t.Errorf("with byte %d of %s now %q, %v is refused and has changed the folder", i, file, b[i], call)
						}
						if c.code == 0 || more != "" {
							restore()
							write(t, filepath.Join(dir, file), string(b))
						}
					}
					if refused {
						seen++
					}
				}
				t.Logf("%s: of %d changes, %d were refused", file, test.flips, seen)
				// An unfinished run's history is the checkpoint's.
				if most := test.flips * 9 / 10; seen < most && (file != task.HistoryFile || test.state == "finished") {
					t.Errorf("of %d changes in %s, %d were refused, want at least %d", test.flips, file, seen, most)
				}
				restore()
			}
		})
	}
}

// damageAll, in the environment, has TestDamagedFiles damage every file in every way, as .ci/damage does.
const damageAll = "HEED_DAMAGE"

// A report's chart, tile and column of times and seconds, which no checksum covers.
var (
	timeChart  = regexp.MustCompile(`,{"title":"Time a step, ms"[^<]*}|<dd>[^<]*</dd><dt>last training took`)
	lastColumn = regexp.MustCompile(`<td><bdi>[^<]*</bdi></td></tr>`)
)

// timeless returns a report without times and seconds.
func timeless(page string) string {
	before, checks, _ := strings.Cut(timeChart.ReplaceAllString(page, ""), "ms a step</th>")
	checks, after, _ := strings.Cut(checks, "</table>")
	return before + lastColumn.ReplaceAllString(checks, "") + after
}

// A damaged file of a run, finished or not, is an error in every command that reads it, or the command does what it
// does with the whole file: it prints the same, writes the same page and goes on to the same bytes. Times and seconds
// are the exception, and so are weights of an earlier check in an unfinished run, which open.
func TestDamagedFiles(t *testing.T) {
	every := 20
	if os.Getenv(damageAll) != "" {
		every = 1
	}
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	base := t.TempDir()
	number, page := 0, filepath.Join(base, "page.html")
	var table strings.Builder
	total := map[string]int{}
	for _, kind := range []struct {
		name  string
		flags []string
		reads []string // but for the folder
	}{
		{"reverse", []string{"--task=reverse"}, []string{"eval", "predict abc gorgonia --scores", "attention abc"}},
		{"labels", []string{"--task=brackets"}, []string{"eval", "predict (()) (( --scores", "attention (())"}},
		{"tags", append(dataFlags(t, "tags"), "--task=tags"), []string{"eval", "predict cat --scores", "attention cat"}},
		{"pairs", append(dataFlags(t, "pairs"), "--task=pairs", "--units=bpe"), []string{"eval", "predict cat --scores", "attention cat"}},
		{"text", append(dataFlags(t, "text"), "--task=text", "--units=bpe"), []string{"eval", "generate --prompt=The --tokens=20", "attention The"}},
	} {
		at := func(name string) string { return filepath.Join(base, kind.name, name) }
		flags := func(name string, more ...string) []string {
			return small(slices.Concat(kind.flags, []string{"--check-every=10", "--decay=40", "--keep-last", "--out=" + at(name)}, more)...)
		}
		succeed(t, flags("whole")...)
		succeed(t, flags("longer", "--max-epochs=4")...)
		succeed(t, flags("foreign", "--seed=2")...)
		succeed(t, flags("earlier", "--max-steps=10")...)
		whole, foreign, earlier := folder(t, at("whole")), folder(t, at("foreign")), folder(t, at("earlier"))
		for _, state := range []string{"finished", "unfinished"} {
			dir, resumed, ends := at("run"), at("whole"), []string{"train", "--resume=" + at("run")}
			good := whole
			if state == "finished" {
				resumed, ends = at("longer"), append(ends, "--max-epochs=4")
			} else {
				succeed(t, flags("unfinished", "--max-steps=25")...)
				good = folder(t, at("unfinished"))
			}
			restore := func() {
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o777)
				for name, content := range good {
					write(t, filepath.Join(dir, name), content)
				}
			}
			restore()
			calls := [][]string{{"report", dir, "--out=" + page}}
			for _, call := range kind.reads {
				calls = append(calls, slices.Insert(strings.Fields(call), 1, dir))
			}
			outcome := func(t *testing.T, call []string) (called, string) {
				c := heed(call...)
				if call[0] == "report" && c.code == 0 {
					return c, timeless(read(t, page))
				}
				return c, c.stdout
			}
			var want []string
			for _, call := range calls {
				c, printed := outcome(t, call)
				if c.code != 0 {
					t.Fatalf("%v: %+v", call, c)
				}
				want = append(want, printed)
			}
			files := []string{
				task.ConfigFile, task.WeightsFile, task.HistoryFile, task.SummaryFile, task.CheckpointFile, task.TimesFile, task.ReportFile,
			}
			for _, name := range []string{task.TokenizerFile, task.SourceTokenizerFile} {
				if _, has := good[name]; has {
					files[6] = name
				}
			}
			for _, file := range files {
				seen := map[string]int{}
				for n := range 6 {
					if number++; number%every != 0 {
						continue
					}
					content, has := good[file]
					if !has { // a summary where there is none
						content = whole[file]
					}
					bad := []byte(content)
					place := rng.IntN(len(bad))
					switch n {
					case 0:
						bad[place] ^= 1 << rng.IntN(8)
					case 1:
						bad = bad[:place]
					case 2:
						bad = []byte(foreign[file])
					case 3:
						if has && (file != task.WeightsFile || state == "finished") {
							bad = []byte(earlier[file])
						}
					case 4, 5: // a digit, for a file of tensors in its header
						header := bad[:min(len(bad), 3000)]
						for place = rng.IntN(len(header)); header[place] < '0' || header[place] > '9'; {
							place = rng.IntN(len(header))
						}
						header[place] = '0' + (header[place]-'0'+byte(1+rng.IntN(9)))%10
					}
					if string(bad) == good[file] || len(bad) == 0 { // the other run has the same file, or none
						bad = []byte(content)
						bad[place] ^= byte(1 + rng.IntN(255))
					}
					write(t, filepath.Join(dir, file), string(bad))
					result := "harmless"
					if !t.Run(fmt.Sprint(kind.name, " ", state, " ", file, " ", n), func(t *testing.T) {
						refused := func(c called) {
							result = "error"
							fail(t, c, 1)
						}
						for k, call := range calls {
							if c, printed := outcome(t, call); c.code != 0 {
								refused(c)
							} else if printed != want[k] {
								t.Errorf("%v prints %.300q, want %.300q", call, printed, want[k])
							}
						}
						if state == "finished" { // there is nothing to resume
							fail(t, heed("train", "--resume="+dir), 1)
						}
						if c := heed(ends...); c.code != 0 {
							refused(c)
						} else {
							sameRun(t, dir, resumed)
						}
					}) {
						result = "silent"
					}
					seen[result]++
					total[result]++
					restore()
				}
				fmt.Fprintf(&table, "%-8s %-10s %-24s %d errors, %d harmless, %d silent\n", kind.name, state, file, seen["error"], seen["harmless"], seen["silent"])
			}
		}
	}
	t.Logf("\n%s%d damaged files: %d errors, %d harmless, %d silent changes", &table, number/every, total["error"], total["harmless"], total["silent"])
}

// What is of another run isn't taken for this one's: the error names the two files that don't fit, and nothing changes.
func TestSwappedFiles(t *testing.T) {
	base := t.TempDir()
	flags := func(dir string, seed string) []string { return small("--task=copy", "--seed="+seed, "--out="+dir) }
	dir, other := filepath.Join(base, "run"), filepath.Join(base, "other")
	fail(t, heedContext(cancelled(t, 15), flags(dir, "1")...), 1, "interrupted")
	fail(t, heedContext(cancelled(t, 15), flags(other, "2")...), 1, "interrupted")
	good, bad := folder(t, dir), folder(t, other)
	for _, file := range []string{task.ConfigFile, task.WeightsFile, task.CheckpointFile} {
		write(t, filepath.Join(dir, file), bad[file])
		before := folder(t, dir)
		if file != task.CheckpointFile {
			fail(t, heed("eval", dir), 1, task.ConfigFile, task.WeightsFile, "changed or swapped")
			fail(t, heed("predict", dir, "abc"), 1, task.ConfigFile, task.WeightsFile, "changed or swapped")
		}
		if file != task.WeightsFile { // which the checkpoint's take the place of
			fail(t, heed("train", "--resume="+dir), 1, task.ConfigFile, task.CheckpointFile, "changed or swapped")
		}
		if !maps.Equal(folder(t, dir), before) {
			t.Errorf("with another %s, the folder has changed", file)
		}
		write(t, filepath.Join(dir, file), good[file])
	}

	// A summary says of which files it is.
	finished := filepath.Join(base, "finished")
	succeed(t, flags(finished, "1")...)
	good = folder(t, finished)
	for _, file := range []string{task.WeightsFile, task.HistoryFile, task.CheckpointFile} {
		for _, changed := range []string{bad[file], good[file][:len(good[file])-1]} {
			write(t, filepath.Join(finished, file), changed)
			before := folder(t, finished)
			fail(t, heed("train", "--resume="+finished), 1, task.SummaryFile+" and "+file, "don't belong together: one of them was changed or swapped")
			fail(t, heed("train", "--resume="+finished, "--max-epochs=5"), 1, task.SummaryFile+" and "+file)
			if !maps.Equal(folder(t, finished), before) {
				t.Errorf("with another %s, the folder has changed", file)
			}
		}
		write(t, filepath.Join(finished, file), good[file])
	}
	write(t, filepath.Join(finished, task.SummaryFile), "{")
	fail(t, heed("train", "--resume="+finished), 1, task.SummaryFile, "remove it, and --resume writes it anew")
	os.Remove(filepath.Join(finished, task.SummaryFile))
	succeed(t, "train", "--resume="+finished)

	// How long a run goes on may be changed.
	want := filepath.Join(base, "longer")
	succeed(t, append(flags(want, "1"), "--max-epochs=5", "--patience=4")...)
	write(t, filepath.Join(dir, task.ConfigFile), read(t, filepath.Join(want, task.ConfigFile)))
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, want)
}
