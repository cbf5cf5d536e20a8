// Package capstan makes a capability of Capstan of a function, with net/http only.
//
// The types of the function are the schemas of the capability. A field is required unless its tag
// has omitempty. An instance registers, sends heartbeats, and on SIGTERM deregisters and lets its
// calls end. Files are not part of it: read and write them through the media routes of the API.
//
// An instance refuses what a browser sends: a page that somebody visits reaches the addresses of that
// person's machine.
package capstan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

const (
	bodyLimit         = 16 << 20
	heartbeatInterval = time.Minute
	grace             = 10 * time.Second
	cleanUp           = 2 * time.Second
	firstPort         = 8100
	lastPort          = 8200
)

var logger = log.New(os.Stdout, "", 0)

// Capability is a function that Capstan calls by HTTP.
type Capability[In, Out any] struct {
	Name        string // letters, digits, _ - and dots
	Version     string // a change of a schema needs a new version
	Description string
	Tags        []string // such as local or gpu
	// CostType is free (the default), per_call or per_second; RateUSD is its price.
	CostType string
	RateUSD  float64
	// MaxConcurrency is the number of calls that run in parallel, by default 1; others wait.
	MaxConcurrency int
	// Deterministic means that equal inputs have equivalent results, so steps may cache them.
	Deterministic bool
	// WarmUp is an input that the router sends once before other calls, after each start; nil: none.
	// Only for a free capability. WarmUpTimeout is a minute by default.
	WarmUp        *In
	WarmUpTimeout time.Duration
	// Affinity is the key of what a call needs loaded, such as "{{ input.model }}": calls with the same
	// key go to an instance that has it loaded, if that is sooner.
	Affinity string
	// MaxResident is how many keys the instance holds loaded at once; 0: as many as it reports.
	MaxResident int
	// Resident returns the keys that are loaded now; nil: the router infers them.
	Resident func() []string
	// Exec does the work. Its context ends when the caller leaves or the instance has to stop.
	// A Failure chooses the status of the answer; any other error is answered 422.
	Exec func(ctx context.Context, call *Call, in In) (Out, error)
}

// Failure is an error with the status of its answer: 422 for a wrong input, 429 or 503 for a busy
// instance, 502 or 504 for a failed one.
type Failure struct {
	Status     int
	Message    string
	RetryAfter time.Duration // for 429 and 503
	Code       string        // for callers that know the capability
}

func (f *Failure) Error() string { return f.Message }

// Call holds the facts of one call, and reports to its caller.
type Call struct {
	IdempotencyKey string         // the same in every attempt of one piece of work, until a wrong answer is asked for again
	PreviousFault  *PreviousFault // why the answer to this call was wrong before; nil: none was
	Attempt        int            // 1 for the first
	Traceparent    string         // forward it in requests to other services
	Tracestate     string         // forward it too
	tell           func(line any)
	mutex          sync.Mutex
	toldAt         time.Time
}

// PreviousFault tells why the answer to a call was wrong. Present it to the model that answers.
type PreviousFault struct {
	Code    string    `json:"code"` // output_invalid, or model_answer_invalid
	Message string    `json:"message"`
	Errors  []Finding `json:"errors"` // the first violations of the schema, where they are known
}

// Finding is one violation of a schema.
type Finding struct {
	Pointer string `json:"pointer"` // JSON Pointer into the answer
	Message string `json:"message"`
}

func readFault(header string) *PreviousFault {
	var fault PreviousFault
	if json.Unmarshal([]byte(header), &fault) != nil || fault.Code == "" || fault.Message == "" {
		return nil
	}
	return &fault
}

// Progress reports progress from 0 to 1. Reports within 250 ms of the last one are dropped, except 1.
func (c *Call) Progress(fraction float64, message string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Since(c.toldAt) < 250*time.Millisecond && fraction < 1 {
		return
	}
	c.toldAt = time.Now()
	c.tell(map[string]any{"progress": math.Min(1, math.Max(0, fraction)), "message": cut(message, 200)})
}

// Log writes a line into the log of the run; the level is debug, info, warn or error.
func (c *Call) Log(level, message string) {
	c.tell(map[string]any{"log": map[string]any{"level": level, "message": cut(message, 2000)}})
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// schemaOf returns the JSON Schema of a type. Supported are structs, maps with text keys, slices, pointers
// (which may be null), texts, numbers and booleans.
func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for _, field := range fieldsOf(t) {
			properties[field.name] = schemaOf(field.kind)
			if field.isRequired {
				required = append(required, field.name)
			}
		}
		return map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	default:
		if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
			return map[string]any{"type": "integer"}
		}
		panic(fmt.Sprintf("capstan: the type %v has no JSON Schema", t))
	}
}

type structField struct {
	name       string
	kind       reflect.Type
	isRequired bool
}

func fieldsOf(t reflect.Type) []structField {
	fields := []structField{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		fields = append(fields, structField{name, field.Type, !strings.Contains(options, "omitempty")})
	}
	return fields
}

// findMissing returns the path of a required field that the value lacks, which encoding/json accepts.
func findMissing(value any, t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Pointer:
		if value != nil {
			return findMissing(value, t.Elem(), path)
		}
	case reflect.Slice, reflect.Array:
		items, _ := value.([]any)
		for at, item := range items {
			if missing := findMissing(item, t.Elem(), fmt.Sprintf("%s[%d]", path, at)); missing != "" {
				return missing
			}
		}
	case reflect.Map:
		items, _ := value.(map[string]any)
		for key, item := range items {
			if missing := findMissing(item, t.Elem(), path+"."+key); missing != "" {
				return missing
			}
		}
	case reflect.Struct:
		object, _ := value.(map[string]any)
		for _, field := range fieldsOf(t) {
			inner, isThere := object[field.name]
			if field.isRequired && !isThere {
				return path + "." + field.name
			}
			if !isThere {
				continue
			}
			if missing := findMissing(inner, field.kind, path+"."+field.name); missing != "" {
				return missing
			}
		}
	}
	return ""
}

func readInput[In any](body []byte) (In, error) {
	var in In
	var whole any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return in, err
	}
	if decoder.More() {
		return in, errors.New("the body holds more than one value")
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return in, err
	}
	if _, isObject := whole.(map[string]any); !isObject {
		return in, errors.New("the body is not a JSON object")
	}
	if missing := findMissing(whole, reflect.TypeFor[In](), ""); missing != "" {
		return in, fmt.Errorf("%s is required", strings.TrimPrefix(missing, "."))
	}
	return in, nil
}

// instance is one running copy of a capability.
type instance[In, Out any] struct {
	Capability[In, Out]
	started       time.Time
	slots         chan struct{}
	depth         atomic.Int64
	stopping      atomic.Bool
	abort         context.Context // ends when open calls have to end
	residentFault sync.Once
	hosts         []string // names by which callers know this machine, besides addresses and localhost
}

func newInstance[In, Out any](c Capability[In, Out], abort context.Context) *instance[In, Out] {
	if c.CostType == "" {
		c.CostType = "free"
	}
	if c.MaxConcurrency < 1 {
		c.MaxConcurrency = 1
	}
	if c.Tags == nil {
		c.Tags = []string{}
	}
	return &instance[In, Out]{
		Capability: c, started: time.Now(), abort: abort, slots: make(chan struct{}, c.MaxConcurrency),
	}
}

func (i *instance[In, Out]) cost() map[string]any {
	return map[string]any{"type": i.CostType, "rate_usd": i.RateUSD}
}

// findBrowser returns why a request is refused: programs never send Origin and Sec-Fetch-Site, and a
// foreign name in Host is one that a page has pointed at this machine.
func (i *instance[In, Out]) findBrowser(r *http.Request) string {
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if _, isThere := r.Header[name]; isThere {
			return "requests of browsers are refused; this one has the header " + name
		}
	}
	at, err := url.Parse("http://" + r.Host)
	allowed := append([]string{"localhost"}, i.hosts...)
	if r.Host == "" || err == nil && (net.ParseIP(at.Hostname()) != nil || slices.Contains(allowed, strings.ToLower(at.Hostname()))) {
		return "" // HTTP/1.0 has no host
	}
	return fmt.Sprintf("the host %s is not allowed; allowed are an address, %s. ADVERTISE_URL names another one",
		r.Host, strings.Join(allowed, ", "))
}

func isJSON(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// refuse answers before the body is read, so the connection cannot serve another request.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Connection", "close")
	fail(w, &Failure{Status: status, Message: message})
}

func (i *instance[In, Out]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := i.findBrowser(r); fault != "" {
		refuse(w, 403, fault)
		return
	}
	method, isKnown := map[string]string{"/exec": "POST", "/health": "GET", "/spec": "GET"}[r.URL.Path]
	switch {
	case !isKnown:
		fail(w, &Failure{Status: 404, Message: "there are POST /exec, GET /health and GET /spec"})
	case r.Method != method:
		w.Header().Set("Allow", method)
		fail(w, &Failure{Status: 405, Message: r.URL.Path + " answers " + method + " only"})
	case r.URL.Path == "/health":
		answer(w, 200, i.report(map[string]any{
			"status": "ok", "name": i.Name, "version": i.Version,
			"uptime_ms": time.Since(i.started).Milliseconds(), "queue_depth": i.depth.Load(),
		}))
	case r.URL.Path == "/spec":
		spec := map[string]any{
			"name": i.Name, "version": i.Version, "description": i.Description, "cost_model": i.cost(),
			"input": schemaOf(reflect.TypeFor[In]()), "output": schemaOf(reflect.TypeFor[Out]()),
		}
		if i.Deterministic {
			spec["deterministic"] = true
		}
		if i.Affinity != "" {
			spec["affinity"] = i.Affinity
		}
		answer(w, 200, spec)
	default:
		i.exec(w, r)
	}
}

func (i *instance[In, Out]) exec(w http.ResponseWriter, r *http.Request) {
	if i.stopping.Load() {
		fail(w, &Failure{Status: 503, Message: "the instance is stopping"})
		return
	}
	if !isJSON(r) {
		refuse(w, 415, "the body needs the header Content-Type: application/json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		fail(w, &Failure{Status: 413, Message: err.Error()})
		return
	}
	in, err := readInput[In](body)
	if err != nil {
		fail(w, err)
		return
	}
	reply := &lines{w: w, report: i.report, isWanted: strings.Contains(r.Header.Get("Accept"), "application/x-ndjson")}
	out, err := i.perform(r, in, reply)
	if err != nil && i.abort.Err() != nil {
		err = &Failure{Status: 503, Message: "the instance is stopping"}
	}
	reply.end(out, err)
}

func (i *instance[In, Out]) perform(r *http.Request, in In, reply *lines) (out Out, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(i.abort, cancel)()
	i.depth.Add(1)
	defer i.depth.Add(-1)
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			logger.Printf("exec failed: %v", panicked)
			err = &Failure{Status: 502, Message: fmt.Sprint(panicked)}
		}
	}()
	attempt, err := strconv.Atoi(r.Header.Get("X-Attempt"))
	if err != nil {
		attempt = 1
	}
	call := &Call{
		IdempotencyKey: r.Header.Get("Idempotency-Key"), Attempt: attempt,
		PreviousFault: readFault(r.Header.Get("X-Previous-Fault")),
		Traceparent:   r.Header.Get("Traceparent"), Tracestate: r.Header.Get("Tracestate"), tell: reply.tell,
	}
	return i.Exec(ctx, call, in)
}

// lines answers one call: as one document, or in lines, from the first report on.
type lines struct {
	mutex    sync.Mutex
	w        http.ResponseWriter
	isWanted bool
	hasBegun bool
	hasEnded bool
	report   func(map[string]any) map[string]any // adds what is loaded to the answer
}

func (l *lines) tell(line any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.isWanted || l.hasEnded {
		return
	}
	if !l.hasBegun {
		l.hasBegun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	_ = json.NewEncoder(l.w).Encode(line)
	_ = http.NewResponseController(l.w).Flush()
}

func (l *lines) end(out any, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.hasEnded = true
	switch {
	case err == nil && !l.hasBegun:
		answer(l.w, 200, l.report(map[string]any{"ok": true, "output": out}))
	case err == nil:
		_ = json.NewEncoder(l.w).Encode(l.report(map[string]any{"ok": true, "output": out}))
	case !l.hasBegun:
		fail(l.w, err)
	default: // the status 200 is sent already
		failure := toFailure(err)
		line := map[string]any{"ok": false, "error": failure.Message, "status": failure.Status}
		if failure.RetryAfter > 0 {
			line["retry_after_s"] = math.Ceil(failure.RetryAfter.Seconds())
		}
		if failure.Code != "" {
			line["error_code"] = failure.Code
		}
		_ = json.NewEncoder(l.w).Encode(line)
	}
}

func toFailure(err error) *Failure {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure
	}
	return &Failure{Status: 422, Message: err.Error()}
}

func fail(w http.ResponseWriter, err error) {
	failure := toFailure(err)
	if failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(math.Ceil(failure.RetryAfter.Seconds())))
	}
	if failure.Code != "" {
		w.Header().Set("X-Error-Code", failure.Code)
	}
	answer(w, failure.Status, map[string]any{"ok": false, "error": failure.Message})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // NaN and the infinities are no JSON
		status = 422
		text, _ = json.Marshal(map[string]any{"ok": false, "error": err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// router sends the requests of one instance to ROUTER_URL.
type router struct {
	base, token, name, endpoint string
}

func (r *router) send(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, r.base+"/v1/capabilities"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 300 {
		return nil
	}
	var problem struct{ Detail string }
	_ = json.NewDecoder(io.LimitReader(response.Body, 65_536)).Decode(&problem)
	return &Failure{Status: response.StatusCode, Message: strings.TrimSpace(response.Status + " " + problem.Detail)}
}

// register repeats until the router answers; it returns an error if the router refuses.
func (r *router) register(ctx context.Context, facts map[string]any) error {
	for pause := time.Second; ; pause = min(30*time.Second, 2*pause) {
		err := r.send(ctx, "POST", "", facts)
		var refused *Failure
		isFinal := errors.As(err, &refused) && refused.Status < 500 && refused.Status != 408 && refused.Status != 429
		if err == nil || isFinal || ctx.Err() != nil {
			return err
		}
		logger.Printf("registration failed, next try in %v: %v", pause, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *router) beat(ctx context.Context, facts map[string]any, report func() map[string]any) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		body := report()
		body["endpoint"] = r.endpoint
		err := r.send(ctx, "POST", "/"+r.name+"/heartbeat", body)
		var refused *Failure
		if errors.As(err, &refused) && refused.Status == 404 {
			err = r.send(ctx, "POST", "", facts) // the router has forgotten the instance
		}
		if err != nil && ctx.Err() == nil {
			logger.Printf("heartbeat failed, ignored: %v", err)
		}
	}
}

// Serve serves until SIGTERM or SIGINT, then ends the process. It reads ROUTER_URL, ROUTER_TOKEN,
// HOST, PORT, ADVERTISE_URL and SHARED_WITH; without ROUTER_URL it serves only.
func Serve[In, Out any](c Capability[In, Out]) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop()
		// A second SIGTERM is no hurry: a supervisor may send it to this process and to its group.
		for <-signals != syscall.SIGINT {
		}
		os.Exit(1)
	}()
	if err := run(ctx, c, os.Getenv); err != nil {
		logger.Fatalf("the instance did not start: %v", err)
	}
}

// hostsOf returns the names by which callers know this machine.
func hostsOf(host, advertised string) []string {
	hosts := []string{}
	if host != "" {
		hosts = append(hosts, strings.ToLower(host))
	}
	if at, err := url.Parse(advertised); err == nil && at.Hostname() != "" {
		hosts = append(hosts, strings.ToLower(at.Hostname()))
	}
	return hosts
}

// run serves until the context ends, then lets open calls end.
func run[In, Out any](ctx context.Context, c Capability[In, Out], env func(string) string) error {
	abort, abortCalls := context.WithCancel(context.Background())
	defer abortCalls()
	if c.WarmUp != nil && c.RateUSD != 0 {
		return fmt.Errorf("warm_up is for instances whose rate is 0, because no project pays for that call; the rate is %v USD", c.RateUSD)
	}
	own := newInstance(c, abort)
	listener, err := listen(env("HOST"), env("PORT"))
	if err != nil {
		return err
	}
	own.hosts = hostsOf(env("HOST"), env("ADVERTISE_URL"))
	server := &http.Server{Handler: own, IdleTimeout: 65 * time.Second, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	endpoint := strings.TrimRight(env("ADVERTISE_URL"), "/")
	if endpoint == "" {
		endpoint = "http://" + listener.Addr().String()
	}
	if env("ROUTER_URL") == "" {
		logger.Printf("register: not registered, ROUTER_URL is not set; serving only at %s", endpoint)
		<-ctx.Done()
	} else if err := own.stayRegistered(ctx, endpoint, env); err != nil {
		return err
	}
	own.stopping.Store(true)
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if server.Shutdown(limit) != nil {
		abortCalls()
		limit, cancel := context.WithTimeout(context.Background(), cleanUp)
		defer cancel()
		_ = server.Shutdown(limit)
	}
	logger.Print("stop: stopped")
	return nil
}

// sharedWith reads the other projects that an instance serves: "all", or a list of ids; nil if it is not set.
func sharedWith(text string) any {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(words) == 0 {
		return nil
	}
	projects := []string{}
	for _, word := range words {
		if word == "all" {
			return word
		}
		if word != "none" {
			projects = append(projects, word)
		}
	}
	return projects
}

// stayRegistered returns when the context has ended and the instance is deregistered.
func (i *instance[In, Out]) stayRegistered(ctx context.Context, endpoint string, env func(string) string) error {
	r := &router{strings.TrimRight(env("ROUTER_URL"), "/"), env("ROUTER_TOKEN"), i.Name, endpoint}
	facts := map[string]any{
		"name": i.Name, "version": i.Version, "endpoint": endpoint,
		"spec_url": endpoint + "/spec", "health_url": endpoint + "/health",
		"cost_model": i.cost(), "tags": i.Tags, "max_concurrency": i.MaxConcurrency,
	}
	if i.MaxResident > 0 {
		facts["max_resident"] = i.MaxResident
	}
	facts = i.report(facts)
	if i.WarmUp != nil {
		facts["warm_up"] = i.warmUp()
	}
	if shared := sharedWith(env("SHARED_WITH")); shared != nil {
		facts["shared_with"] = shared
	}
	if err := r.register(ctx, facts); err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() == nil {
		logger.Printf("register: %s %s at %s as %s", i.Name, i.Version, r.base, endpoint)
		r.beat(ctx, facts, func() map[string]any { return i.report(map[string]any{"queue_depth": i.depth.Load()}) })
	}
	if err := r.send(context.Background(), "DELETE", "/"+i.Name, map[string]any{"endpoint": endpoint}); err != nil {
		logger.Printf("deregistration failed, ignored: %v", err)
	} else {
		logger.Print("stop: deregistered")
	}
	return nil
}

// report adds the keys that are loaded now. Work that is done is worth more than a report: a panic of
// Resident is printed once, and the keys are left out.
func (i *instance[In, Out]) report(body map[string]any) (reported map[string]any) {
	reported = body
	defer func() {
		if panicked := recover(); panicked != nil {
			i.residentFault.Do(func() { logger.Printf("resident failed, and is left out: %v", panicked) })
		}
	}()
	if i.Resident != nil {
		body["resident"] = append([]string{}, i.Resident()...) // nil is null in JSON
	}
	return
}

func (c Capability[In, Out]) warmUp() map[string]any {
	warmUp := map[string]any{"input": c.WarmUp}
	if c.WarmUpTimeout > 0 {
		warmUp["timeout_s"] = math.Ceil(c.WarmUpTimeout.Seconds())
	}
	return warmUp
}

// listen opens the given port, else a random free one of 8100 to 8200.
func listen(host, port string) (net.Listener, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	if port != "" {
		return net.Listen("tcp", net.JoinHostPort(host, port))
	}
	for _, offset := range rand.Perm(lastPort - firstPort + 1) {
		if listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(firstPort+offset))); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("every port from %d to %d of %s is taken", firstPort, lastPort, host)
}
