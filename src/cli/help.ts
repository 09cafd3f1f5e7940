// What each command says of itself after its options.

/** After `plimsoll --help`. */
export const OVERVIEW = `
Examples:
  plimsoll serve --demo                        see it work, without any server
  plimsoll serve http://10.0.0.7:8000 http://10.0.0.8:8000
  plimsoll watch http://10.0.0.7:8000 http://10.0.0.8:8000
  plimsoll score metrics-*.txt                 judge pages saved with curl
  plimsoll check plimsoll.yaml                 find the faults of a config
  plimsoll sim --compare original,plimsoll     what a policy does to latency

Exit codes: 0 fine, 1 something was found (saturated, unreadable, faulty), 2 wrong usage.`;

/** After `plimsoll serve --help`. */
export const SERVE_HELP = `
Any path and method goes on to one of the endpoints; where they are read is said by
their URLs, as for watch. Metrics, health and the pool are at the admin port, on
loopback: /metrics, /healthz, /readyz, /pool.
SIGHUP reads the config again; SIGTERM lets requests end, a second one does not.

--demo needs no engines: it starts six simulated ones and a load, and shows the live
table of watch. It listens on loopback, and takes free ports where others have its own.

Examples:
  plimsoll serve --demo
  plimsoll serve http://10.0.0.7:8000 http://10.0.0.8:8000 --port 8080
  plimsoll serve --config plimsoll.yaml
  plimsoll serve --config plimsoll.yaml --set flow='{ttl: 10s}'`;

/** After `plimsoll watch --help`. */
export const WATCH_HELP = `
A URL without a path is read at its engine's usual one (/metrics for most).
The bar of LOAD has its load line at a score of 1. Press q to quit.
Without a terminal, one line per second is printed; with --json, one JSON value.
With --once, the exit code is 1 when the pool is saturated, nobody passes, or an
endpoint cannot be read.

Examples:
  plimsoll watch --demo
  plimsoll watch http://10.0.0.7:8000 --interval 200ms --set queueDepthThreshold=8
  plimsoll watch --config plimsoll.yaml --record monday.jsonl
  plimsoll watch http://10.0.0.7:8000 --once --json`;

/** After `plimsoll score --help`. */
export const SCORE_HELP = `
Each file is the page of one endpoint; - is standard input.
With --replay, the exit code is 1 when the pool was saturated at any time.

Examples:
  curl -s http://10.0.0.7:8000/metrics | plimsoll score -
  plimsoll score --replay monday.jsonl --set queueDepthThreshold=8 --set headroom=0.2`;

/** After `plimsoll check --help`. */
export const CHECK_HELP = `
A config has the options of the detector at the top, and what to read:

  queueDepthThreshold: 5            # Q, requests
  kvCacheUtilThreshold: 0.8         # K, a fraction
  metricsStalenessThreshold: 200ms  # S (default: three times the interval)
  headroom: 0                       # a fraction
  stalenessPolicy: saturated        # saturated, ignore, hold
  holdFor: 2s                       # for hold
  aggregation: mean                 # mean, weighted, max, capped
  interval: 50ms
  timeout: 1s
  engine: vllm                      # default: recognised
  endpoints:
    - http://10.0.0.7:8000
    - { url: "http://10.0.0.8:8000", weight: 2, queueDepthThreshold: 10 }

serve has more: listen, admin, endpointsFile, dns, flow, affinity, headers, retry,
timeouts, limits, inBand; see the schema plimsoll/schema.json. A secret is named
\${NAME} in a URL or a header, and stands in the environment.

Faults are printed as FILE:LINE:COLUMN: what is wrong, and exit with 1.

With --from-epp, the file is the config of an llm-d or Gateway API Inference Extension
EPP, or a ConfigMap or a chart's values that hold one; - is standard input. What it is
here goes to standard output; what does not map, and why, to standard error.

Examples:
  plimsoll check plimsoll.yaml
  plimsoll check --from-epp epp.yaml > plimsoll.yaml
  kubectl get configmap epp -o yaml | plimsoll check --from-epp -`;

/** After `plimsoll sim --help`. */
export const SIM_HELP = `
Without a scenario, thundering-herd runs. --set and --sweep take paths of the scenario,
and the detector's options by their own names.

Examples:
  plimsoll sim --list
  plimsoll sim mixed-gpus --compare round-robin,least-outstanding,plimsoll
  plimsoll sim thundering-herd --policy original --sweep scrape.interval=50ms,200ms,1s,5s
  plimsoll sim kv-pressure --sweep kvCacheUtilThreshold=0.5..1:0.1
  plimsoll sim --print two-tenants > mine.yaml && plimsoll sim mine.yaml --html report.html
  plimsoll sim --trace AzureLLMInferenceTrace_conv.csv --set endpoints.0.count=2`;
