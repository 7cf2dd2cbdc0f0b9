-- oldest program that may still write: 1

-- Texts are compared as bytes, as everywhere in SQLite.

CREATE TABLE meta (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  born TEXT NOT NULL,
  since REAL NOT NULL,
  written_at REAL NOT NULL DEFAULT 0,
  term INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Small numbers instead of uids halve the indexes. AUTOINCREMENT: a number is never used again.
CREATE TABLE schedule (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uid TEXT NOT NULL UNIQUE,
  key TEXT NOT NULL,
  mark INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  until INTEGER,
  phase TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX schedule_key ON schedule (key, uid);
CREATE INDEX schedule_ended ON schedule (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE timing (
  schedule INTEGER NOT NULL REFERENCES schedule (id),
  after INTEGER NOT NULL,
  fields TEXT NOT NULL,
  PRIMARY KEY (schedule, after)
) STRICT, WITHOUT ROWID;

-- Cold: one insert and, as a rule, one update a run.
CREATE TABLE run (
  schedule INTEGER NOT NULL REFERENCES schedule (id),
  due INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  job TEXT NOT NULL,
  taken_up REAL,
  created REAL,
  started INTEGER,
  finished INTEGER,
  exit_code INTEGER,
  exit_reason TEXT NOT NULL,
  container TEXT NOT NULL,
  message TEXT NOT NULL,
  generation INTEGER NOT NULL,
  template_hash TEXT NOT NULL,
  request TEXT NOT NULL,
  attempts TEXT NOT NULL,
  recorded REAL NOT NULL,
  PRIMARY KEY (schedule, due, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_due ON run (due, schedule, kind);
-- Small: most runs succeed, and have no reason then.
CREATE INDEX run_notable ON run (due, schedule, kind) WHERE state <> 'succeeded' OR reason <> '';
CREATE INDEX run_unfinished ON run (schedule, due, kind)
  WHERE state IN ('scheduled', 'pending', 'running', 'retrying');
CREATE INDEX run_requested ON run (due, schedule, kind) WHERE kind <> 's';

-- `last` is the last instant in the range; of an open one, that of ranges.OPEN_LAST.
CREATE TABLE span (
  schedule INTEGER NOT NULL REFERENCES schedule (id),
  kind TEXT NOT NULL,
  first INTEGER NOT NULL,
  reason TEXT NOT NULL,
  last INTEGER NOT NULL,
  counts TEXT NOT NULL,
  recorded REAL NOT NULL,
  PRIMARY KEY (schedule, kind, first, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX span_of_schedule ON span (schedule, last, kind, reason, first);
CREATE INDEX span_last ON span (last, schedule, kind, reason, first);
-- Small where most runs succeed: the days on which all did are not in it.
CREATE INDEX span_notable ON span (last, schedule, kind, reason, first)
  WHERE instr(counts, ',') OR NOT instr(counts, '"succeeded"');
CREATE INDEX span_kind ON span (kind, last, schedule, first);

-- Hot: what starts later, and what was promoted and has not begun. It stays small.
CREATE TABLE deferred (
  schedule INTEGER NOT NULL REFERENCES schedule (id),
  due INTEGER NOT NULL,
  kind TEXT NOT NULL,
  due_at REAL NOT NULL,
  priority INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  request TEXT NOT NULL,
  term INTEGER,
  process TEXT,
  PRIMARY KEY (schedule, due, kind)
) STRICT, WITHOUT ROWID;
-- In the order of promotion: with another one it sorts all that is due.
CREATE INDEX deferred_due ON deferred (due_at, priority DESC, schedule, due, kind)
  WHERE state IN ('scheduled', 'retrying');

CREATE TABLE minute (
  at INTEGER PRIMARY KEY,
  span_s INTEGER NOT NULL,
  ended TEXT NOT NULL,
  lateness TEXT NOT NULL,
  load INTEGER NOT NULL,
  score REAL,
  active INTEGER NOT NULL,
  index_runs INTEGER NOT NULL
) STRICT;
CREATE INDEX minute_short ON minute (at) WHERE span_s < 3600;
