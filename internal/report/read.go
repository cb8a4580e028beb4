package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// mostBytes is the size of the largest report that Read reads.
const mostBytes = 512 << 20

// Read reads a report: a file, or report.json in a folder, both also compressed by WriteCompressed. It reads the reports of all versions
// within admissiontest.dev/v1alpha1; it ignores unknown keys. The error says what is wrong, and
// where.
func Read(path string) (Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		compressed := filepath.Join(path, CompressedFile)
		path = filepath.Join(path, JSONFile)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && isFile(compressed) {
			path = compressed
		}
	}
	document, err := userfile.ReadAtMost(path, mostBytes)
	if err == nil && bytes.HasPrefix(document, []byte{0x1f, 0x8b}) {
		if document, err = decompress(document); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return Report{}, fmt.Errorf("read report: %w; want a file that \"admissiontest run --report DIR\" wrote, or its folder", err)
	}
	r, err := parse(document)
	if err != nil {
		return Report{}, fmt.Errorf("read report %s: %w", path, err)
	}
	return r, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// decompress returns what gzip compressed.
func decompress(document []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, mostBytes+1))
	if err == nil && len(content) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes without the compression; want at most that", mostBytes)
	}
	return content, err
}

// parse decodes a report.
func parse(document []byte) (Report, error) {
	var whole json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(document)).Decode(&whole); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Report{}, fmt.Errorf("%w: the file is truncated", io.ErrUnexpectedEOF)
	}
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(document, &kind); err != nil {
		return Report{}, err
	}
	switch {
	case kind.Kind != Kind || !strings.HasPrefix(kind.APIVersion, "admissiontest.dev/"):
		return Report{}, fmt.Errorf("got apiVersion %q and kind %q, want %s and %s: it is not a report of admissiontest", kind.APIVersion, kind.Kind, APIVersion, Kind)
	case kind.APIVersion != APIVersion:
		return Report{}, fmt.Errorf("got apiVersion %q, want %s: use the version of admissiontest that wrote it, or a later one", kind.APIVersion, APIVersion)
	}
	var r Report
	if err := json.Unmarshal(document, &r); err != nil {
		return Report{}, err
	}
	seen := map[string]bool{}
	for i, outcome := range r.Outcomes {
		switch {
		case outcome.Name == "":
			return Report{}, fmt.Errorf("outcomes[%d] has no name", i)
		case seen[outcome.Name]:
			return Report{}, fmt.Errorf("outcomes[%d]: there are two outcomes of scenario %q", i, outcome.Name)
		}
		seen[outcome.Name] = true
	}
	if counted := Count(r.Outcomes); counted != r.Summary {
		return Report{}, fmt.Errorf("the summary has %d scenarios (%s), but the outcomes are %d (%s): the file was changed, or is damaged", r.Summary.Total, r.Summary, counted.Total, counted)
	}
	return r, nil
}
