package providers

import (
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
