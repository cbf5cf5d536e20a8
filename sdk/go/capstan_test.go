package capstan

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

type part struct {
	Name  string  `json:"name"`
	Count int     `json:"count,omitempty"`
	Size  float64 `json:"size,omitempty"`
}

type order struct {
	Parts []part            `json:"parts"`
	Notes map[string]string `json:"notes,omitempty"`
	Gift  *bool             `json:"gift,omitempty"`
}

type receipt struct {
	Parts int `json:"parts"`
}

type work = func(context.Context, *Call, order) (receipt, error)

func start(t *testing.T, exec work) *httptest.Server {
	t.Helper()
	c := Capability[order, receipt]{Name: "order", Version: "1", Description: "Orders.", Exec: exec}
	server := httptest.NewServer(newInstance(c, context.Background()))
	t.Cleanup(server.Close)
	return server
}

func post(t *testing.T, url, body, accept string) (*http.Response, string) {
	t.Helper()
	request, _ := http.NewRequest("POST", url+"/exec", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response, strings.TrimSpace(string(text))
}

func count(_ context.Context, _ *Call, in order) (receipt, error) { return receipt{len(in.Parts)}, nil }

func TestTheWarmUpIsAnInputWithALimit(t *testing.T) {
	c := Capability[order, receipt]{WarmUp: &order{Parts: []part{}}, WarmUpTimeout: 1500 * time.Millisecond}
	text, _ := json.Marshal(c.warmUp())
	if string(text) != `{"input":{"parts":[]},"timeout_s":2}` {
		t.Error(string(text))
	}
}

func TestWhatIsLoadedIsDeclaredAndReported(t *testing.T) {
	c := Capability[order, receipt]{Name: "order", Version: "1", Description: "Orders.", Exec: count}
	c.Affinity, c.Resident = "{{ input.notes.model }}", func() []string { return []string{"sdxl"} }
	server := httptest.NewServer(newInstance(c, context.Background()))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"/spec": `"affinity":"{{ input.notes.model }}"`, "/health": `"resident":["sdxl"]`} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: got %s", path, text)
		}
	}
	if _, text := post(t, server.URL, `{"parts":[]}`, ""); text != `{"ok":true,"output":{"parts":0},"resident":["sdxl"]}` {
		t.Errorf("got %s", text)
	}
}

func TestAResultIsKeptWhenResidentFails(t *testing.T) {
	for _, c := range []struct {
		resident func() []string
		want     string
	}{
		{func() []string { panic("CUDA error") }, `{"ok":true,"output":{"parts":0}}`},
		{func() []string { return nil }, `{"ok":true,"output":{"parts":0},"resident":[]}`},
	} {
		own := Capability[order, receipt]{Name: "order", Version: "1", Exec: count, Resident: c.resident}
		server := httptest.NewServer(newInstance(own, context.Background()))
		t.Cleanup(server.Close)
		if _, text := post(t, server.URL, `{"parts":[]}`, ""); text != c.want {
			t.Errorf("got %s", text)
		}
		if response, err := http.Get(server.URL + "/health"); err != nil || response.StatusCode != 200 {
			t.Errorf("got %v %v", response, err)
		}
	}
}

func TestTypesAreSchemas(t *testing.T) {
	text, _ := json.Marshal(schemaOf(reflect.TypeFor[order]()))
	want := `{"additionalProperties":false,"properties":{` +
		`"gift":{"anyOf":[{"type":"boolean"},{"type":"null"}]},` +
		`"notes":{"additionalProperties":{"type":"string"},"type":"object"},` +
		`"parts":{"items":{"additionalProperties":false,"properties":{"count":{"type":"integer"},` +
		`"name":{"type":"string"},"size":{"type":"number"}},"required":["name"],"type":"object"},"type":"array"}},` +
		`"required":["parts"],"type":"object"}`
	if string(text) != want {
		t.Errorf("got %s", text)
	}
}

func TestAnswers(t *testing.T) {
	server := start(t, count)
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"parts":[{"name":"a"},{"name":"b"}]}`, 200, `{"ok":true,"output":{"parts":2}}`},
		{`{}`, 422, `parts is required`},
		{`{"parts":[{"name":"a"},{}]}`, 422, `parts[1].name is required`},
		{`{"parts":[],"gfit":true}`, 422, `unknown field`},
		{`{"parts":"none"}`, 422, `cannot unmarshal`},
		{`{"parts":[]} {}`, 422, `more than one value`},
		{`null`, 422, `not a JSON object`},
		{`{"parts":`, 422, `unexpected EOF`},
		{`{"parts":["` + strings.Repeat("a", bodyLimit) + `"]}`, 413, `too large`},
	} {
		response, text := post(t, server.URL, c.body, "")
		if response.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%.40s: got %d %.200s", c.body, response.StatusCode, text)
		}
	}
}

func TestWhatABrowserSendsIsRefused(t *testing.T) {
	own := newInstance(Capability[order, receipt]{Exec: count}, context.Background())
	own.hosts = hostsOf("", "https://Parts.Example:8443/base")
	server := httptest.NewServer(own)
	t.Cleanup(server.Close)
	const json, body = "application/json", `{"parts":[]}`
	for _, c := range []struct {
		method, path, host, kind string
		header                   string
		status                   int
	}{
		{"POST", "/exec", "", json, "", 200},
		{"POST", "/exec", "parts.example", json, "", 200},
		{"POST", "/exec", "localhost:8100", "Application/JSON ;charset=utf-8", "", 200},
		{"POST", "/exec", "[::1]:8100", json, "", 200},
		{"GET", "/health", "10.0.0.1", "", "", 200},
		{"POST", "/exec", "", json, "Origin", 403},
		{"POST", "/exec", "", json, "Sec-Fetch-Site", 403},
		{"GET", "/spec", "", "", "Origin", 403},
		{"OPTIONS", "/exec", "", "", "Origin", 403},
		{"POST", "/exec", "evil.example", json, "", 403},
		{"GET", "/spec", "evil.example:8100", "", "", 403},
		{"GET", "/health", "127.0.0.1.evil.example", "", "", 403},
		{"POST", "/exec", "", "text/plain", "", 415},
		{"POST", "/exec", "", "", "", 415},
		{"POST", "/exec", "", "application/x-www-form-urlencoded", "", 415},
		{"POST", "/exec", "", "text/plain;application/json", "", 415},
	} {
		request, _ := http.NewRequest(c.method, server.URL+c.path, strings.NewReader(body))
		request.Host = c.host
		if c.kind != "" {
			request.Header.Set("Content-Type", c.kind)
		}
		if c.header != "" {
			request.Header.Set(c.header, "https://evil.example")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%+v: got %d", c, response.StatusCode)
		}
	}
}

func TestFailuresChooseTheirStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{errors.New("no such colour"), 422},
		{&Failure{Status: 503, Message: "busy", RetryAfter: 1200 * time.Millisecond, Code: "full"}, 503},
	} {
		server := start(t, func(context.Context, *Call, order) (receipt, error) { return receipt{}, c.err })
		response, text := post(t, server.URL, `{"parts":[]}`, "")
		if response.StatusCode != c.status || text != `{"error":"`+c.err.Error()+`","ok":false}` {
			t.Errorf("got %d %s", response.StatusCode, text)
		}
		if c.status == 503 && (response.Header.Get("Retry-After") != "2" || response.Header.Get("X-Error-Code") != "full") {
			t.Errorf("got %v", response.Header)
		}
	}
}

func TestACallKnowsTheFaultOfTheAnswerBefore(t *testing.T) {
	var seen *PreviousFault
	server := start(t, func(_ context.Context, call *Call, _ order) (receipt, error) {
		seen = call.PreviousFault
		return receipt{}, nil
	})
	found := []Finding{{Pointer: "/n", Message: "必要"}}
	for header, want := range map[string]*PreviousFault{
		`{"code":"output_invalid","message":"n is \u5fc5\u8981"}`: {Code: "output_invalid", Message: "n is 必要"},
		`{"code":"model_answer_invalid","message":"m","errors":[{"pointer":"/n","message":"\u5fc5\u8981"}],"x":1}`: {
			Code: "model_answer_invalid", Message: "m", Errors: found,
		},
		"": nil, "no JSON": nil, "7": nil, "null": nil, "[]": nil, `{"code":1,"message":"m"}`: nil, `{"code":"c"}`: nil,
	} {
		request, _ := http.NewRequest("POST", server.URL+"/exec", strings.NewReader(`{"parts":[]}`))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Previous-Fault", header)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if !reflect.DeepEqual(seen, want) {
			t.Errorf("%s: got %+v", header, seen)
		}
	}
}

func TestPanicsAreFailuresOfTheInstance(t *testing.T) {
	server := start(t, func(context.Context, *Call, order) (receipt, error) { panic("a bug") })
	response, text := post(t, server.URL, `{"parts":[]}`, "")
	if response.StatusCode != 502 || !strings.Contains(text, "a bug") {
		t.Errorf("got %d %s", response.StatusCode, text)
	}
}

func TestLinesHoldProgressLogAndTheAnswer(t *testing.T) {
	server := start(t, func(_ context.Context, call *Call, in order) (receipt, error) {
		call.Progress(0, "begins")
		call.Progress(0.5, "too soon")
		call.Log("warn", "a word")
		if len(in.Parts) == 0 {
			return receipt{}, &Failure{Status: 503, Message: "busy", RetryAfter: time.Second}
		}
		return receipt{len(in.Parts)}, nil
	})
	told := `{"message":"begins","progress":0}` + "\n" + `{"log":{"level":"warn","message":"a word"}}` + "\n"
	for body, last := range map[string]string{
		`{"parts":[{"name":"a"}]}`: `{"ok":true,"output":{"parts":1}}`,
		`{"parts":[]}`:             `{"error":"busy","ok":false,"retry_after_s":1,"status":503}`,
	} {
		response, text := post(t, server.URL, body, "application/x-ndjson")
		if response.Header.Get("Content-Type") != "application/x-ndjson" || text != told+last {
			t.Errorf("got %s", text)
		}
	}
	if _, text := post(t, server.URL, `{"parts":[{"name":"a"}]}`, ""); text != `{"ok":true,"output":{"parts":1}}` {
		t.Errorf("got %s", text)
	}
}

func TestACallEndsWithItsCaller(t *testing.T) {
	ended := make(chan error, 1)
	server := start(t, func(ctx context.Context, call *Call, _ order) (receipt, error) {
		call.Progress(0, "begins")
		<-ctx.Done()
		ended <- ctx.Err()
		return receipt{}, ctx.Err()
	})
	ctx, leave := context.WithCancel(context.Background())
	request, _ := http.NewRequestWithContext(ctx, "POST", server.URL+"/exec", strings.NewReader(`{"parts":[]}`))
	request.Header.Set("Accept", "application/x-ndjson")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = bufio.NewReader(response.Body).ReadString('\n')
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type seen struct {
	method, path string
	body         map[string]any
}

// A router that keeps its requests and answers the first ones with the given statuses.
func aRouter(t *testing.T, statuses ...int) (*httptest.Server, chan seen) {
	requests := make(chan seen, 100)
	var mutex sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		requests <- seen{r.Method, r.URL.Path, body}
		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
			_, _ = w.Write([]byte(`{"detail":"the name belongs to another project"}`))
		}
	}))
	t.Cleanup(server.Close)
	return server, requests
}

func environment(url string) func(string) string {
	values := map[string]string{"ROUTER_URL": url, "ROUTER_TOKEN": "token", "PORT": "0"}
	return func(name string) string { return values[name] }
}

func TestItRegistersAgainAndAgainThenLetsItsCallsEnd(t *testing.T) {
	server, requests := aRouter(t, 503)
	begun, proceed, done := make(chan string), make(chan bool), make(chan error)
	c := Capability[order, receipt]{Name: "order", Version: "1", CostType: "per_call", RateUSD: 0.5}
	c.Exec = func(context.Context, *Call, order) (receipt, error) {
		begun <- "begun"
		<-proceed
		return receipt{7}, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { done <- run(ctx, c, environment(server.URL)) }()
	first, again := <-requests, <-requests
	if first.path != "/v1/capabilities" || !reflect.DeepEqual(first, again) {
		t.Fatalf("got %v, %v", first, again)
	}
	endpoint, _ := again.body["endpoint"].(string)
	cost, _ := json.Marshal(again.body["cost_model"])
	if again.body["spec_url"] != endpoint+"/spec" || string(cost) != `{"rate_usd":0.5,"type":"per_call"}` {
		t.Errorf("got %v", again.body)
	}
	answered := make(chan string)
	go func() {
		_, text := post(t, endpoint, `{"parts":[]}`, "")
		answered <- text
	}()
	<-begun
	stop()
	if gone := <-requests; gone.method != "DELETE" || gone.path != "/v1/capabilities/order" {
		t.Errorf("got %v", gone)
	}
	close(proceed)
	if text := <-answered; text != `{"ok":true,"output":{"parts":7}}` {
		t.Errorf("got %s", text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestItRegistersTheProjectsThatItServes(t *testing.T) {
	for text, want := range map[string]any{
		"all":                "all",
		"prj_a,all":          "all",
		"prj_a,prj_b":        []any{"prj_a", "prj_b"},
		" prj_a ,\n\tprj_b ": []any{"prj_a", "prj_b"},
		"none":               []any{},
		"none prj_a":         []any{"prj_a"},
		"":                   nil,
		" , ":                nil,
	} {
		server, requests := aRouter(t)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		env := func(name string) string {
			if name == "SHARED_WITH" {
				return text
			}
			return environment(server.URL)(name)
		}
		go func() { done <- run(ctx, Capability[order, receipt]{Name: "order", Version: "1", Exec: count}, env) }()
		if got := (<-requests).body["shared_with"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAWarmUpThatNoProjectPaysForEndsTheStart(t *testing.T) {
	c := Capability[order, receipt]{Name: "order", Version: "1", Exec: count, RateUSD: 0.5, WarmUp: &order{}}
	err := run(context.Background(), c, environment(""))
	want := "warm_up is for instances whose rate is 0, because no project pays for that call; the rate is 0.5 USD"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestARefusedRegistrationEndsTheStart(t *testing.T) {
	server, _ := aRouter(t, 403)
	c := Capability[order, receipt]{Name: "order", Version: "1", Exec: count}
	err := run(context.Background(), c, environment(server.URL))
	if err == nil || !strings.Contains(err.Error(), "belongs to another project") {
		t.Errorf("got %v", err)
	}
}
