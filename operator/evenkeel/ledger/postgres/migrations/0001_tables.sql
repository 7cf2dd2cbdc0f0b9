-- oldest program that may still write: 1

-- Texts are compared as bytes, as SQLite does. Numbers of schedules are small: they stand in every
-- index. A sequence would not do for them if it were asked for rows that are there already: it
-- would be used up within days.

CREATE TABLE {schema}.meta (
  name text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);

CREATE TABLE {schema}.term (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  term bigint NOT NULL
);
INSERT INTO {schema}.term (term) VALUES (0);

CREATE TABLE {schema}.schedule (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid text COLLATE "C" NOT NULL UNIQUE,
  key text COLLATE "C" NOT NULL,
  mark bigint NOT NULL DEFAULT 0,
  ended_at bigint,
  until bigint,
  phase text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 70);
CREATE INDEX schedule_key ON {schema}.schedule (key, uid);
CREATE INDEX schedule_ended ON {schema}.schedule (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE {schema}.timing (
  schedule integer NOT NULL,
  after bigint NOT NULL,
  fields text COLLATE "C" NOT NULL,
  PRIMARY KEY (schedule, after)
);

-- Hot: what starts later, and what was promoted and has not started. It stays small, and its rows
-- come and go: it is vacuumed early.
CREATE TABLE {schema}.deferred (
  schedule integer NOT NULL,
  due bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  due_at double precision NOT NULL,
  priority bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL,
  request text COLLATE "C" NOT NULL,
  term bigint,
  process text COLLATE "C",
  PRIMARY KEY (schedule, due, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
-- As promote_due orders them.
CREATE INDEX deferred_waiting ON {schema}.deferred (due_at, priority DESC, schedule, due, kind)
  WHERE state IN ('scheduled', 'retrying');

-- Cold: one row a run, written when it begins and when it ends.
CREATE TABLE {schema}.run (
  schedule integer NOT NULL,
  due bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL,
  job text COLLATE "C" NOT NULL,
  taken_up double precision,
  created double precision,
  started bigint,
  finished bigint,
  exit_code bigint,
  exit_reason text COLLATE "C" NOT NULL,
  container text COLLATE "C" NOT NULL,
  message text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  template_hash text COLLATE "C" NOT NULL,
  request text COLLATE "C" NOT NULL,
  attempts text COLLATE "C" NOT NULL,
  recorded double precision NOT NULL,
  PRIMARY KEY (schedule, due, kind)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX run_newest ON {schema}.run (due, schedule, kind);
-- Most runs succeed.
CREATE INDEX run_trouble ON {schema}.run (due, schedule, kind)
  WHERE state IN ('cancelled', 'failed', 'lost', 'missed', 'skipped');
CREATE INDEX run_reason ON {schema}.run (reason, due, schedule, kind) WHERE reason <> '';
CREATE INDEX run_requested ON {schema}.run (due, schedule, kind) WHERE kind <> 's';
CREATE INDEX run_unfinished ON {schema}.run (schedule, due, kind)
  WHERE state IN ('scheduled', 'pending', 'running', 'retrying');

-- Range rows. `last` is the last instant; that of an open row is larger than all others.
CREATE TABLE {schema}.span (
  schedule integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  reason text COLLATE "C" NOT NULL,
  last bigint NOT NULL,
  counts text COLLATE "C" NOT NULL,
  recorded double precision NOT NULL,
  PRIMARY KEY (schedule, kind, first, reason)
);
CREATE INDEX span_schedule ON {schema}.span (schedule, last);
CREATE INDEX span_newest ON {schema}.span (last, schedule, (kind || '/' || reason), first);
CREATE INDEX span_reason ON {schema}.span
  (reason, last, schedule, (kind || '/' || reason), first) WHERE reason <> '';
-- By state: rows that count a seldom one stand among many that do not.
CREATE INDEX span_succeeded ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"succeeded":%';
CREATE INDEX span_failed ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"failed":%';
CREATE INDEX span_skipped ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"skipped":%';
CREATE INDEX span_missed ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"missed":%';
CREATE INDEX span_cancelled ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"cancelled":%';
CREATE INDEX span_lost ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"lost":%';
CREATE INDEX span_unrecorded ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"unrecorded":%';
CREATE INDEX span_scheduled ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"scheduled":%';
CREATE INDEX span_pending ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"pending":%';
CREATE INDEX span_running ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"running":%';
CREATE INDEX span_retrying ON {schema}.span (last, schedule, (kind || '/' || reason), first)
  WHERE counts LIKE '%"retrying":%';
CREATE INDEX span_verdicts ON {schema}.span (recorded) WHERE kind = 'verdict';
CREATE INDEX span_days ON {schema}.span (last) WHERE kind = 'day';
CREATE INDEX span_folded ON {schema}.span (last) WHERE kind IN ('day', 'month');

CREATE TABLE {schema}.minute (
  at bigint PRIMARY KEY,
  span_s integer NOT NULL,
  ended text COLLATE "C" NOT NULL,
  lateness text COLLATE "C" NOT NULL,
  load bigint NOT NULL,
  score double precision,
  active bigint NOT NULL,
  index_runs bigint NOT NULL
);
CREATE INDEX minute_young ON {schema}.minute (at) WHERE span_s < 3600;
