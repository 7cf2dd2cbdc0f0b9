-- oldest program that may still write: 1

-- Who said that a run is his wish: the annotation of its request, as told.
ALTER TABLE run ADD COLUMN requested_by TEXT NOT NULL DEFAULT '';
