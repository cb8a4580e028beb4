package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// verdicts keeps the verdicts in a file, one per line, so that a run that was stopped can continue.
type verdicts struct {
	by   map[string]judged // by mutant.id
	file *os.File
}

// openVerdicts reads the file, or creates it. It ignores the verdict of a survivor if again returns
// true for its mutant.id, so that this mutant is judged again.
func openVerdicts(path string, again func(id string) bool) (*verdicts, error) {
	v := &verdicts{by: map[string]judged{}}
	if err := v.read(path); err != nil {
		return nil, err
	}
	for id, one := range v.by {
		if one.Verdict == survived && again(id) {
			delete(v.by, id)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	var err error
	v.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return v, err
}

// read reads the lines of an existing file. A later line about a mutant replaces an earlier line.
// If the process was killed while it wrote, the last line is incomplete: read removes it.
func (v *verdicts) read(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for i, line := range bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")) {
		var one judged
		if err := json.Unmarshal(line, &one); err != nil && len(whole) > 0 {
			return fmt.Errorf("%s:%d: %w: remove the line", path, i+1, err)
		}
		v.by[one.id()] = one
	}
	return os.Truncate(path, int64(len(whole)))
}

// add adds a verdict.
func (v *verdicts) add(one judged) error {
	text, err := json.Marshal(one)
	if err == nil {
		_, err = v.file.Write(append(text, '\n'))
	}
	v.by[one.id()] = one
	return err
}

func (v *verdicts) close() error { return v.file.Close() }

// todo returns the numbers (places in the sample, from 1) of mutants without a verdict. It looks at
// the first n mutants of the sample, and does not count mutants that do not compile.
func (v *verdicts) todo(sample []mutant, n int) []int {
	var numbers []int
	for i := 0; i < len(sample) && n > 0; i++ {
		one, known := v.by[sample[i].id()]
		if !known {
			numbers = append(numbers, i+1)
		}
		if !known || one.Verdict != invalid {
			n--
		}
	}
	return numbers
}

// of returns the first n verdicts of a sample about mutants that compile.
func (v *verdicts) of(sample []mutant, n int) []judged {
	var all []judged
	for _, m := range sample {
		if one, ok := v.by[m.id()]; ok && one.Verdict != invalid && len(all) < n {
			all = append(all, one)
		}
	}
	return all
}

// ofOtherSeeds returns the verdicts about mutants that compile in the other files of a folder, by seed.
func ofOtherSeeds(folder string, seed uint64) (map[uint64][]judged, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "seed-*.jsonl"))
	if err != nil {
		return nil, err
	}
	others := map[uint64][]judged{}
	for _, path := range paths {
		var other uint64
		if _, err := fmt.Sscanf(filepath.Base(path), "seed-%d.jsonl", &other); err != nil || other == seed {
			continue
		}
		v := &verdicts{by: map[string]judged{}}
		if err := v.read(path); err != nil {
			return nil, err
		}
		for _, one := range v.by {
			if one.Verdict != invalid {
				others[other] = append(others[other], one)
			}
		}
	}
	return others, nil
}
