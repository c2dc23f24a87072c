BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0007');
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
INSERT INTO "assets" VALUES(1,'d1','w1','dataset','mnist',1,5.0,0,'{"definition": {"type": "file", "sources": []}, "files": [], "description": "", "tags": {}}');
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
INSERT INTO "experiments" VALUES(1,'1f99351a-b7a4-4bd0-9392-d4ef36616b0a','w1','digits',NULL,2,'{"id": "1f99351a-b7a4-4bd0-9392-d4ef36616b0a", "name": "digits", "created_at": 1.0, "archived_at": null, "tags": {}, "runs": 0}');
CREATE TABLE holdings (
	workspace_id VARCHAR(64) NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	PRIMARY KEY (workspace_id, kind, digest)
)
 WITHOUT ROWID

;
INSERT INTO "holdings" VALUES('w1','snapshot','5555555555555555555555555555555555555555555555555555555555555555');
CREATE TABLE journals (
	run_pk INTEGER NOT NULL, 
	stream VARCHAR(128) NOT NULL, 
	position BIGINT NOT NULL, 
	PRIMARY KEY (run_pk, stream), 
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
INSERT INTO "journals" VALUES(1,'journal',100);
INSERT INTO "journals" VALUES(1,'six',10);
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
)
 WITHOUT ROWID

;
INSERT INTO "metric_blocks" VALUES(1,0,5,NULL,NULL,X'64000000000000F03F000000000000E03F555555555555D53F000000000000D03F9A9999999999C93F',X'6400000000000000400000000000000840000000000000104000000000000014400000000000001840',X'6E');
INSERT INTO "metric_blocks" VALUES(2,0,1,NULL,NULL,X'6A5B2274657874225D',X'640000000000000840',X'6E');
INSERT INTO "metric_blocks" VALUES(3,0,3,NULL,NULL,X'7200000000000000000100000000000000',X'64000000000000244000000000000026400000000000002840',X'7200000000000000000100000000000000');
INSERT INTO "metric_blocks" VALUES(4,0,5,NULL,NULL,X'6A5B4E614E2C322C2274657874222C747275652C313030303030303030303030303030303030303030303030303030303030305D',X'6400000000000034400000000000003540000000000000364000000000000037400000000000003840',X'6A5B6E756C6C2C372C6E756C6C2C6E756C6C2C6E756C6C5D');
INSERT INTO "metric_blocks" VALUES(5,0,1,NULL,NULL,X'64000000000000F83F',X'640000000000003E40',X'6E');
INSERT INTO "metric_blocks" VALUES(5,1,1,'list',NULL,X'6A5B5B312C2261222C6E756C6C5D5D',X'640000000000003F40',X'6E');
INSERT INTO "metric_blocks" VALUES(5,2,1,NULL,NULL,X'640000000000000440',X'640000000000004040',X'6E');
INSERT INTO "metric_blocks" VALUES(6,0,2,NULL,NULL,X'6A5B7B2278223A312C2279223A322E307D2C7B2278223A327D5D',X'6400000000000044400000000000804440',X'6E');
INSERT INTO "metric_blocks" VALUES(7,0,1,NULL,NULL,X'6A5B7B2278223A5B312C325D2C2279223A5B332C345D7D5D',X'640000000000004940',X'6E');
INSERT INTO "metric_blocks" VALUES(8,0,1,NULL,NULL,X'6A5B5B312C325D5D',X'640000000000004E40',X'6E');
INSERT INTO "metric_blocks" VALUES(9,0,1,NULL,NULL,X'6A5B22616D6C3A2F2F617274696661637449642F4578706572696D656E7452756E2F646369642E66697273742F692E706E67225D',X'640000000000805140',X'6E');
CREATE TABLE metric_series (
	pk INTEGER NOT NULL, 
	run_pk INTEGER NOT NULL, 
	experiment_pk INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	points INTEGER NOT NULL, 
	last FLOAT, 
	least FLOAT, 
	greatest FLOAT, 
	PRIMARY KEY (pk), 
	UNIQUE (run_pk, name), 
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
INSERT INTO "metric_series" VALUES(1,1,1,'loss','scalar',5,0.2,0.2,1.0);
INSERT INTO "metric_series" VALUES(2,1,1,'note','scalar',1,NULL,NULL,NULL);
INSERT INTO "metric_series" VALUES(3,1,1,'epoch','scalar',3,2.0,0.0,2.0);
INSERT INTO "metric_series" VALUES(4,1,1,'odd','scalar',5,1.0e+30,2.0,1.0e+30);
INSERT INTO "metric_series" VALUES(5,1,1,'both','scalar',3,2.5,1.5,2.5);
INSERT INTO "metric_series" VALUES(6,1,1,'row','row',2,NULL,NULL,NULL);
INSERT INTO "metric_series" VALUES(7,1,1,'table','table',1,NULL,NULL,NULL);
INSERT INTO "metric_series" VALUES(8,1,1,'list','list',1,NULL,NULL,NULL);
INSERT INTO "metric_series" VALUES(9,1,1,'image','reference',1,NULL,NULL,NULL);
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
INSERT INTO "requests" VALUES(1,'user','11111111-1111-4111-8111-111111111111','m',4.0,201,'{}');
CREATE TABLE run_assets (
	run_pk INTEGER NOT NULL, 
	asset_id VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	PRIMARY KEY (run_pk, asset_id, role, name), 
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
INSERT INTO "run_assets" VALUES(1,'d1','input','mnist');
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
INSERT INTO "run_files" VALUES(1,'outputs/model.pkl','abababababababababababababababababababababababababababababababab',7,2.5,NULL);
CREATE TABLE run_labels (
	run_pk INTEGER NOT NULL, 
	kind VARCHAR(1) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	value TEXT, 
	PRIMARY KEY (run_pk, kind, "key"), 
	FOREIGN KEY(run_pk) REFERENCES runs (pk)
);
INSERT INTO "run_labels" VALUES(1,'t','kind','baseline');
INSERT INTO "run_labels" VALUES(1,'t','bare',NULL);
INSERT INTO "run_labels" VALUES(1,'p','p','q');
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
	body TEXT NOT NULL, ended INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (workspace_id, id), 
	FOREIGN KEY(experiment_pk) REFERENCES experiments (pk)
);
INSERT INTO "runs" VALUES(1,'w1','first',1,NULL,NULL,NULL,NULL,'Completed',NULL,2.0,NULL,NULL,1,'{"experiment": "digits", "number": 1, "display_name": null, "description": null, "history": [{"at": 3.0, "state": "Running", "reason": "", "until": ""}, {"at": 3.0, "state": "Finalizing", "reason": "", "until": ""}, {"at": 3.0, "state": "Completed", "reason": "Ended with exit code 0", "until": ""}], "cancel_requested": false, "tags": {"kind": "baseline", "bare": null}, "properties": {"p": "q"}, "definition": null, "job": null, "owner": null, "handle": null, "launches": 0, "snapshot_id": "5555555555555555555555555555555555555555555555555555555555555555", "error": null, "warnings": [], "created_by": null, "nonce": null}',1);
INSERT INTO "runs" VALUES(2,'w1','second',1,'first','first',NULL,NULL,'NotStarted',NULL,2.0,NULL,NULL,0,'{"experiment":"digits","number":2,"display_name":null,"description":null,"history":[],"cancel_requested":false,"tags":{},"properties":{},"definition":null,"job":null,"owner":null,"handle":null,"launches":0,"snapshot_id":null,"error":null,"warnings":[],"created_by":null,"nonce":null}',0);
CREATE TABLE snapshots (
	id VARCHAR(64) NOT NULL, 
	manifest VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	size BIGINT NOT NULL, 
	files INTEGER NOT NULL, 
	PRIMARY KEY (id)
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
INSERT INTO "workspaces" VALUES(1,'w1','local','local','default','{"id": "w1", "subscription_id": "local", "resource_group": "local", "name": "default", "created_at": 1.0, "tags": {}}');
CREATE INDEX runs_by_experiment ON runs (experiment_pk, pk);
CREATE INDEX run_labels_by_key ON run_labels (kind, "key", value);
CREATE INDEX run_assets_by_asset ON run_assets (asset_id);
CREATE INDEX runs_by_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_by_root ON runs (root_id) WHERE root_id IS NOT NULL;
CREATE INDEX runs_by_minded ON runs (minded) WHERE minded IS NOT NULL;
CREATE INDEX runs_not_ended ON runs (ended) WHERE ended = 0;
CREATE INDEX metric_series_by_least ON metric_series (name, least, experiment_pk);
CREATE INDEX metric_series_by_greatest ON metric_series (name, greatest, experiment_pk);
CREATE INDEX runs_by_workspace ON runs (workspace_id);
CREATE INDEX runs_by_state ON runs (workspace_id, state);
COMMIT;
