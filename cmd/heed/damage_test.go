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
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
)

// damageAll is an environment variable that .ci/damage sets. With it, TestDamagedFiles damages every file in every way
// and flips 3,960 bytes.
const damageAll = "HEED_DAMAGE"

// These match the parts of a report that show times: a chart, a tile and a column. No checksum covers them.
var (
	timeChart  = regexp.MustCompile(`,{"title":"Time per step, ms"[^<]*}|<dd>[^<]*</dd><dt>last training took`)
	lastColumn = regexp.MustCompile(`<td><bdi>[^<]*</bdi></td></tr>`)
)

// timeless returns a report without times and seconds.
func timeless(page string) string {
	before, checks, _ := strings.Cut(timeChart.ReplaceAllString(page, ""), "ms per step</th>")
	checks, after, _ := strings.Cut(checks, "</table>")
	return before + lastColumn.ReplaceAllString(checks, "") + after
}

// fill makes a folder with these files alone.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	os.RemoveAll(dir)
	must.Do(t, os.Mkdir(dir, 0o777))
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
}

// outcome makes a call. For heed report, which writes page, it returns the page without times as the output.
func outcome(t *testing.T, page string, call []string) called {
	t.Helper()
	c := heed(call...)
	if c.code == 0 && call[0] == "report" {
		c.stdout = timeless(read(t, page))
	}
	return c
}

// If a file of a run is damaged, every command either fails or does the same as with the whole file. If it fails, the
// error names the file, and no file changes. Otherwise it prints the same, writes the same page, and resumes to the
// same bytes. There are two exceptions: times and seconds may differ, and an unfinished run accepts the weights of an
// earlier check. Nearly every flipped byte of a file that the run depends on is an error.
func TestDamagedFiles(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	const ways = 6
	every := 40
	if os.Getenv(damageAll) != "" {
		every = 1
	}
	seed := testseed.Of(t)
	var m sync.Mutex // guards table and total
	var table strings.Builder
	total := map[string]int{}
	t.Run("kinds", func(t *testing.T) {
		for i, kind := range []struct {
			name  string
			flips int // flipped bytes per file, with damageAll
			flags []string
			reads []string // calls without the folder; the second is tried with every flip
		}{
			{"reverse", 300, []string{"--task=reverse"}, []string{"eval", "predict abc gorgonia --top=2", "attention abc"}},
			{"classification", 30, []string{"--task=brackets"}, []string{"eval", "predict (()) (( --top=2", "attention (())"}},
			{"tagging", 30, append(dataFlags(t, "tagging"), "--task=tagging", "--mix=false"), []string{"eval", "predict cat --top=2", "attention cat"}},
			{"seq2seq", 30, append(dataFlags(t, "seq2seq"), "--task=seq2seq", "--units=bpe"), []string{"eval", "predict cat --top=2", "attention cat"}},
			{"text", 30, append(dataFlags(t, "text"), "--task=text", "--units=bpe"), []string{"eval", "generate --prompt=The --tokens=20", "attention The", "predict fox"}},
		} {
			if every > 1 && (kind.name == "classification" || kind.name == "tagging") { // .ci/damage has all
				continue
			}
			t.Run(kind.name, func(t *testing.T) {
				t.Parallel()
				rng, number, base := rand.New(rand.NewPCG(seed, uint64(i))), i, t.TempDir()
				page := filepath.Join(base, "page.html")
				path := func(name string) string { return filepath.Join(base, name) }
				flags := func(name string, more ...string) []string {
					return small(slices.Concat(kind.flags, []string{"--check-every=10", "--decay=40", "--keep-last", "--out=" + path(name)}, more)...)
				}
				succeed(t, flags("whole")...)
				succeed(t, flags("longer", "--max-epochs=4")...)
				succeed(t, flags("foreign", "--seed=2")...)
				succeed(t, flags("earlier", "--max-steps=10")...)
				whole, foreign, earlier := folder(t, path("whole")), folder(t, path("foreign")), folder(t, path("earlier"))
				for _, state := range []string{"finished", "unfinished"} {
					dir, good := path("run"), whole
					if state == "unfinished" {
						succeed(t, flags("unfinished", "--max-steps=20")...) // nothing has a checksum of a check between two others
						good = folder(t, path("unfinished"))
					}
					fill(t, dir, good)
					calls := [][]string{{"report", dir, "--out=" + page}}
					for _, call := range kind.reads {
						calls = append(calls, slices.Insert(strings.Fields(call), 1, dir))
					}
					var want []string
					for _, call := range calls {
						c := outcome(t, page, call)
						if c.code != 0 {
							t.Fatalf("%v: %+v", call, c)
						}
						want = append(want, c.stdout)
					}
					files := []string{
						runfolder.ConfigFile, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.SummaryFile, runfolder.CheckpointFile, runfolder.TimesFile, runfolder.ReportFile,
					}
					for _, name := range []string{runfolder.TokenizerFile, runfolder.SourceTokenizerFile} {
						if _, has := good[name]; has {
							files[6] = name
						}
					}
					for _, file := range files {
						content, has := good[file]
						if !has { // an unfinished run gets a summary
							content = whole[file]
						}
						flips := 0
						if has && file != runfolder.TimesFile && file != runfolder.ReportFile { // nothing depends on these two
							if flips = 1; every == 1 {
								flips = kind.flips
							}
						}
						seen, refusedFlips, resumedFlips := map[string]int{}, 0, 0
						for n := range ways + flips {
							if n < ways {
								if number++; number%every != 0 {
									continue
								}
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
								if has && (file != runfolder.WeightsFile || state == "finished") {
									bad = []byte(earlier[file])
								}
							case 4, 5: // a digit; in a file of tensors, one of the header
								header := bad[:min(len(bad), 3000)]
								for place = rng.IntN(len(header)); header[place] < '0' || header[place] > '9'; {
									place = rng.IntN(len(header))
								}
								header[place] = '0' + (header[place]-'0'+byte(1+rng.IntN(9)))%10
							}
							// If the other run has the same file or none, flip a byte instead.
							if n >= ways || string(bad) == good[file] || len(bad) == 0 {
								bad = []byte(content)
								bad[place] ^= byte(1 + rng.IntN(255))
							}
							damaged := maps.Clone(good)
							damaged[file] = string(bad)
							write(t, filepath.Join(dir, file), string(bad))
							result, quick := "harmless", n >= ways && n%5 > 0
							if !t.Run(fmt.Sprint(state, " ", file, " ", n), func(t *testing.T) {
								refused := func(call []string, c called) {
									result = "error"
									fail(t, c, 1, file)
									after := folder(t, dir)
									if slices.Contains(call, "--max-epochs=4") { // config.json gets the flag's value before the checkpoint is read
										after[runfolder.ConfigFile] = damaged[runfolder.ConfigFile]
									}
									if !maps.Equal(after, damaged) {
										t.Errorf("%v fails, but has changed the folder", call)
									}
								}
								for k, call := range calls {
									if quick && k != 2 {
										continue
									}
									if c := outcome(t, page, call); c.code != 0 {
										refused(call, c)
									} else if c.stdout != want[k] {
										t.Errorf("%v prints %.300q, want %.300q", call, c.stdout, want[k])
									}
								}
								if resumedFlips > flips/10 { // resuming takes as long as a run
									return
								}
								for _, longer := range []bool{false, true} {
									call, resumed := []string{"train", "--resume=" + dir}, path("whole")
									if longer {
										call, resumed = append(call, "--max-epochs=4"), path("longer")
									}
									if longer && state == "unfinished" && n%5 > 0 {
										continue
									}
									c := heed(call...)
									switch {
									case c.code == 0:
										sameRun(t, dir, resumed)
										fill(t, dir, damaged)
										if n >= ways {
											resumedFlips++
										}
									case strings.Contains(c.stderr, "is finished: there is nothing to resume"):
										fail(t, c, 1)
									default:
										refused(call, c)
										if longer {
											write(t, filepath.Join(dir, runfolder.ConfigFile), damaged[runfolder.ConfigFile])
										}
									}
									if !longer && state == "finished" && c.code == 0 {
										t.Errorf("%v resumes a finished run", call)
									}
								}
							}) {
								result = "silent"
							}
							seen[result]++
							if n >= ways && result == "error" {
								refusedFlips++
							}
							os.Remove(filepath.Join(dir, file))
							if has {
								write(t, filepath.Join(dir, file), content)
							}
						}
						// An unfinished run's history comes from the checkpoint.
						if limit := (flips*9 + 9) / 10; refusedFlips < limit && (file != runfolder.HistoryFile || state == "finished") {
							t.Errorf("%d of %d flipped bytes of %s are errors, want at least %d", refusedFlips, flips, file, limit)
						}
						m.Lock()
						for result, n := range seen {
							total[result] += n
						}
						fmt.Fprintf(&table, "%-8s %-10s %-24s %d errors, %d harmless, %d silent\n", kind.name, state, file, seen["error"], seen["harmless"], seen["silent"])
						m.Unlock()
					}
				}
			})
		}
	})
	t.Logf("\n%s%d damaged files: %d errors, %d harmless, %d silent changes", &table, total["error"]+total["harmless"]+total["silent"], total["error"], total["harmless"], total["silent"])
}

// Without one of its files, a run does the same as with it, or the error names the file. If the error advises to resume
// the run, this restores the file.
func TestMissingFiles(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	base := t.TempDir()
	dir, whole, unfinished, page := filepath.Join(base, "run"), filepath.Join(base, "whole"), filepath.Join(base, "unfinished"), filepath.Join(base, "page.html")
	flags := func(out string, more ...string) []string {
		return small(slices.Concat(dataFlags(t, "classification"), []string{"--task=classification", "--units=bpe", "--check-every=10", "--decay=40", "--out=" + out}, more)...)
	}
	calls := [][]string{{"eval", dir}, {"predict", dir, "cat"}, {"report", dir, "--out=" + page}}
	succeed(t, flags(whole)...)
	must.Have(t, read(t, filepath.Join(whole, runfolder.SummaryFile)), `"linear": `)
	succeed(t, flags(unfinished, "--max-steps=20")...) // a check between two others would be in the history alone
	for state, good := range map[string]map[string]string{"finished": folder(t, whole), "unfinished": folder(t, unfinished)} {
		fill(t, dir, good)
		var want []string
		for _, call := range calls {
			want = append(want, outcome(t, page, call).stdout)
		}
		for file := range good {
			t.Run(state+" without "+file, func(t *testing.T) {
				fill(t, dir, good)
				must.Do(t, os.Remove(filepath.Join(dir, file)))
				advised := false
				for i, call := range calls {
					switch c := outcome(t, page, call); {
					case c.code != 0:
						fail(t, c, 1, file, "restore it")
						advised = advised || strings.Contains(c.stderr, "let heed train --resume write it")
					case file == runfolder.SummaryFile && call[0] == "report": // the run may be unfinished
						must.Have(t, c.stdout, "finished. It has taken")
					case c.stdout != want[i]:
						t.Errorf("%v prints %.300q, want %.300q", call, c.stdout, want[i])
					}
				}
				switch c := heed("train", "--resume="+dir); {
				case c.code == 0:
					sameRun(t, dir, whole)
				case advised || state == "unfinished" && file == runfolder.CheckpointFile:
					t.Errorf("resuming fails: %s", c.stderr)
				case !strings.Contains(c.stderr, "is finished"):
					fail(t, c, 1, file, "restore it")
				}
			})
		}
	}
}

// A folder that has only files that a run writes before its configuration is like an empty one.
func TestKilledAtTheBeginning(t *testing.T) {
	t.Parallel()
	dir, whole := filepath.Join(t.TempDir(), "run"), ran(t, "--task=copy", "--seed=1")
	must.Do(t, os.Mkdir(dir, 0o777))
	for _, file := range []string{runfolder.TokenizerFile, runfolder.SourceTokenizerFile, runfolder.PublishedFile} {
		write(t, filepath.Join(dir, file), "{}")
	}
	rejected(t, heed("train", "--resume="+dir), 1, "it has no config.json; heed train makes one")
	succeed(t, small("--task=copy", "--seed=1", "--out="+dir)...)
	sameRun(t, dir, whole)
}
