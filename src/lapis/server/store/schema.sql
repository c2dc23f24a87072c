CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE workspaces (
	pk INTEGER NOT NULL,
	id VARCHAR(64) NOT NULL,
	subscription_id VARCHAR(255) NOT NULL,
	resource_group VARCHAR(255) NOT NULL,
	name VARCHAR(255) NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (pk),
	UNIQUE (subscription_id, resource_group, name),
	UNIQUE (id)
);
CREATE TABLE experiments (
	pk INTEGER NOT NULL,
	id VARCHAR(64) NOT NULL,
	workspace_id VARCHAR(64) NOT NULL,
	name VARCHAR(255) NOT NULL,
	archived_at FLOAT,
	runs INTEGER NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (pk),
	UNIQUE (workspace_id, name),
	UNIQUE (id)
);
CREATE TABLE runs (
	pk INTEGER NOT NULL,
	workspace_id VARCHAR(64) NOT NULL,
	id VARCHAR(256) NOT NULL,
	experiment_pk INTEGER NOT NULL,
	parent_id VARCHAR(256),
	root_id VARCHAR(256),
	type VARCHAR(64),
	target VARCHAR(255),
	state VARCHAR(16) NOT NULL,
	minded VARCHAR(8),
	created_at FLOAT NOT NULL,
	archived_at FLOAT,
	last_heard FLOAT,
	revision INTEGER NOT NULL,
	body TEXT NOT NULL, ended INTEGER DEFAULT '0' NOT NULL, standing INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (pk),
	UNIQUE (workspace_id, id),
	FOREIGN KEY(experiment_pk) REFERENCES experiments (pk)
);
CREATE TABLE run_files (
	run_pk INTEGER NOT NULL,
	name VARCHAR(1024) NOT NULL,
	hash VARCHAR(64),
	size BIGINT NOT NULL,
	created_at FLOAT NOT NULL,
	alias_of VARCHAR(1024),
	PRIMARY KEY (run_pk, name),
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
CREATE TABLE metric_series (
	pk INTEGER NOT NULL,
	run_pk INTEGER NOT NULL,
	experiment_pk INTEGER NOT NULL,
	name VARCHAR(255) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	points INTEGER NOT NULL,
	last FLOAT,
	least FLOAT,
	greatest FLOAT, workspace_pk INTEGER, standing INTEGER,
	PRIMARY KEY (pk),
	UNIQUE (run_pk, name),
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
CREATE TABLE journals (
	run_pk INTEGER NOT NULL,
	stream VARCHAR(128) NOT NULL,
	position BIGINT NOT NULL,
	PRIMARY KEY (run_pk, stream),
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
CREATE TABLE snapshots (
	id VARCHAR(64) NOT NULL,
	manifest VARCHAR(64) NOT NULL,
	created_at FLOAT NOT NULL,
	size BIGINT NOT NULL,
	files INTEGER NOT NULL,
	PRIMARY KEY (id)
);
CREATE TABLE assets (
	pk INTEGER NOT NULL,
	id VARCHAR(64) NOT NULL,
	workspace_id VARCHAR(64) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	name VARCHAR(255) NOT NULL,
	version INTEGER NOT NULL,
	created_at FLOAT NOT NULL,
	revision INTEGER NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (pk),
	UNIQUE (workspace_id, kind, name, version),
	UNIQUE (id)
);
CREATE TABLE run_assets (
	run_pk INTEGER NOT NULL,
	asset_id VARCHAR(64) NOT NULL,
	role VARCHAR(16) NOT NULL,
	name VARCHAR(255) NOT NULL,
	PRIMARY KEY (run_pk, asset_id, role, name),
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
CREATE INDEX run_assets_by_asset ON run_assets (asset_id);
CREATE INDEX runs_by_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_by_root ON runs (root_id) WHERE root_id IS NOT NULL;
CREATE INDEX runs_by_minded ON runs (minded) WHERE minded IS NOT NULL;
CREATE INDEX runs_not_ended ON runs (ended) WHERE ended = 0;
CREATE TABLE requests (
	pk INTEGER NOT NULL,
	actor VARCHAR(400) NOT NULL,
	identity VARCHAR(64) NOT NULL,
	mark VARCHAR(64) NOT NULL,
	at FLOAT NOT NULL,
	status INTEGER NOT NULL,
	answer TEXT NOT NULL,
	PRIMARY KEY (pk),
	UNIQUE (actor, identity)
);
CREATE TABLE holdings (
	workspace_id VARCHAR(64) NOT NULL,
	kind VARCHAR(8) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	PRIMARY KEY (workspace_id, kind, digest)
)
 WITHOUT ROWID;
CREATE TABLE metric_blocks (
	series_pk INTEGER NOT NULL,
	start INTEGER NOT NULL,
	points INTEGER NOT NULL,
	kind VARCHAR(16),
	peaks TEXT,
	value BLOB NOT NULL,
	at BLOB NOT NULL,
	step BLOB NOT NULL,
	PRIMARY KEY (series_pk, start),
	FOREIGN KEY(series_pk) REFERENCES metric_series (pk)
);
CREATE INDEX runs_of_workspace ON runs (workspace_id, standing);
CREATE INDEX runs_of_experiment ON runs (experiment_pk, standing);
CREATE INDEX least_of_workspace ON metric_series (workspace_pk, name, standing, least, run_pk) WHERE standing IS NOT NULL;
CREATE INDEX greatest_of_workspace ON metric_series (workspace_pk, name, standing, greatest, run_pk) WHERE standing IS NOT NULL;
CREATE INDEX least_of_experiment ON metric_series (experiment_pk, name, standing, least, run_pk) WHERE standing IS NOT NULL;
CREATE INDEX greatest_of_experiment ON metric_series (experiment_pk, name, standing, greatest, run_pk) WHERE standing IS NOT NULL;
CREATE INDEX series_not_ranked ON metric_series (name) WHERE standing IS NULL;
CREATE TABLE run_marks (
	mark BIGINT NOT NULL,
	run_pk INTEGER NOT NULL,
	PRIMARY KEY (mark, run_pk)
)
 WITHOUT ROWID;
INSERT INTO alembic_version VALUES ('0008');
