-- Migrations as Rails, Django, Prisma and Alembic print them.

-- >>> A rails: a column with a default
ALTER TABLE "invoices" ADD "currency" character varying(3) DEFAULT 'EUR' NOT NULL;
INSERT INTO "schema_migrations" (version) VALUES ('20260214101500');
-- >>> A rails: timestamps with a default
ALTER TABLE "devices" ADD "created_at" timestamp(6) DEFAULT CURRENT_TIMESTAMP NOT NULL;
ALTER TABLE "devices" ADD "updated_at" timestamp(6) DEFAULT CURRENT_TIMESTAMP NOT NULL;
-- >>> D:add-required-column rails: timestamps without one
ALTER TABLE "devices" ADD "created_at" timestamp(6) NOT NULL;
ALTER TABLE "devices" ADD "updated_at" timestamp(6) NOT NULL;
-- >>> B:create-index-not-concurrent rails: add_reference with an index
ALTER TABLE "invoices" ADD "customer_id" bigint;
CREATE INDEX "index_invoices_on_customer_id" ON "invoices" ("customer_id");
-- >>> B:add-constraint-scan rails: add_reference with a foreign key
ALTER TABLE "invoices" ADD "customer_id" bigint;
ALTER TABLE "invoices" ADD CONSTRAINT "fk_rails_9f3c2" FOREIGN KEY ("customer_id") REFERENCES "customers" ("id");
-- >>> A rails: the same, not valid
ALTER TABLE "invoices" ADD "customer_id" bigint;
ALTER TABLE "invoices" ADD CONSTRAINT "fk_rails_9f3c2" FOREIGN KEY ("customer_id") REFERENCES "customers" ("id") NOT VALID;
-- >>> C rails: disable_ddl_transaction!
CREATE INDEX CONCURRENTLY "index_invoices_on_paid_at" ON "invoices" ("paid_at") WHERE paid_at IS NULL;
-- >>> B:concurrently-in-transaction rails: algorithm concurrently, ddl transaction forgotten
BEGIN;
CREATE INDEX CONCURRENTLY "index_invoices_on_paid_at" ON "invoices" ("paid_at");
INSERT INTO "schema_migrations" (version) VALUES ('20260214101500');
COMMIT;
-- >>> A rails: a join table with its indexes
CREATE TABLE "projects_members" ("project_id" bigint NOT NULL, "member_id" bigint NOT NULL);
CREATE UNIQUE INDEX "index_projects_members" ON "projects_members" ("project_id", "member_id");
ALTER TABLE "projects_members" ADD CONSTRAINT "fk_a" FOREIGN KEY ("project_id") REFERENCES "projects" ("id");
-- >>> D:drop-column rails: remove_column
ALTER TABLE "customers" DROP COLUMN "fax";
-- >>> D:rename rails: rename_column and its index
ALTER TABLE "customers" RENAME COLUMN "mail" TO "email";
ALTER INDEX "index_customers_on_mail" RENAME TO "index_customers_on_email";
-- >>> D:rename rails: rename_table with sequence and key
ALTER TABLE "clients" RENAME TO "customers";
ALTER TABLE "public"."clients_id_seq" RENAME TO "customers_id_seq";
ALTER INDEX "clients_pkey" RENAME TO "customers_pkey";
-- >>> B:change-type-rewrite rails: change_column to bigint
ALTER TABLE "events" ALTER COLUMN "subject_id" TYPE bigint;
-- >>> B:set-not-null-scan rails: change_column_null with a default for old rows
UPDATE "events" SET "kind"='x' WHERE "kind" IS NULL;
ALTER TABLE "events" ALTER COLUMN "kind" SET NOT NULL;
-- >>> A rails: change_column_null to true
ALTER TABLE "events" ALTER COLUMN "kind" DROP NOT NULL;
-- >>> A rails: change_column_default
ALTER TABLE "events" ALTER COLUMN "kind" SET DEFAULT 'y';
-- >>> C rails: strong_migrations' way to NOT NULL
BEGIN;
ALTER TABLE "events" ADD CONSTRAINT "events_kind_null" CHECK ("kind" IS NOT NULL) NOT VALID;
COMMIT;
BEGIN;
ALTER TABLE "events" VALIDATE CONSTRAINT "events_kind_null";
COMMIT;
BEGIN;
ALTER TABLE "events" ALTER COLUMN "kind" SET NOT NULL;
ALTER TABLE "events" DROP CONSTRAINT "events_kind_null";
COMMIT;
-- >>> A rails: create_enum and a column of it
CREATE TYPE "delivery_state" AS ENUM ('open', 'sent');
ALTER TABLE "parcels" ADD "state" "delivery_state" DEFAULT 'open' NOT NULL;
-- >>> A rails: a column of an enum of an earlier migration
ALTER TABLE "parcels" ADD "state" delivery_state DEFAULT 'open' NOT NULL;
-- >>> B:drop-index-not-concurrent rails: remove_index
DROP INDEX "index_parcels_on_state";
-- >>> B:add-column-rewrite rails: a uuid for each row
ALTER TABLE "parcels" ADD "token" uuid DEFAULT gen_random_uuid() NOT NULL;
-- >>> B:dml-bulk rails: update_all in a migration
UPDATE "parcels" SET "state" = 'sent' WHERE "parcels"."sent_at" IS NOT NULL;
-- >>> A rails: comment and default privileges
COMMENT ON TABLE "parcels" IS 'What is on its way';
COMMENT ON COLUMN "parcels"."state" IS NULL;
-- >>> B:add-unique rails: add_unique_constraint
ALTER TABLE "parcels" ADD CONSTRAINT "uniq_parcels_code" UNIQUE ("code") DEFERRABLE INITIALLY DEFERRED;
-- >>> C rails: unique index, then its constraint
CREATE UNIQUE INDEX CONCURRENTLY "uniq_parcels_code" ON "parcels" ("code");
ALTER TABLE "parcels" ADD CONSTRAINT "uniq_parcels_code" UNIQUE USING INDEX "uniq_parcels_code";
-- >>> E:add-exclusion rails: add_exclusion_constraint
ALTER TABLE "bookings" ADD CONSTRAINT "no_overlap" EXCLUDE USING gist ("room_id" WITH =, daterange("from", "to") WITH &&);
-- >>> A rails: counter cache
ALTER TABLE "posts" ADD "comments_count" integer DEFAULT 0 NOT NULL;
-- >>> A rails: a virtual column of json
ALTER TABLE "posts" ADD "metadata" jsonb DEFAULT '{}' NOT NULL;
-- >>> A rails: pgvector
CREATE EXTENSION IF NOT EXISTS vector;
ALTER TABLE "posts" ADD "embedding" vector(1536);
-- >>> B:create-index-not-concurrent rails: an index on an expression
CREATE INDEX "index_users_on_lower_email" ON "users" (lower(email));
-- >>> A django: a table with relations
BEGIN;
--
-- Create model Ticket
--
CREATE TABLE "desk_ticket" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "title" varchar(200) NOT NULL, "owner_id" integer NOT NULL);
ALTER TABLE "desk_ticket" ADD CONSTRAINT "desk_ticket_owner_id_fk_auth_user_id" FOREIGN KEY ("owner_id") REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "desk_ticket_owner_id_idx" ON "desk_ticket" ("owner_id");
COMMIT;
-- >>> A django: a nullable field
BEGIN;
ALTER TABLE "desk_ticket" ADD COLUMN "closed_at" timestamp with time zone NULL;
COMMIT;
-- >>> B:add-column-constraint django: a checked field with a default that is dropped at once
BEGIN;
ALTER TABLE "desk_ticket" ADD COLUMN "priority" smallint DEFAULT 3 NOT NULL CHECK ("priority" >= 0);
ALTER TABLE "desk_ticket" ALTER COLUMN "priority" DROP DEFAULT;
COMMIT;
-- >>> A django: db_default
ALTER TABLE "desk_ticket" ADD COLUMN "priority" smallint DEFAULT 3 NOT NULL;
-- >>> B:add-constraint-scan django: a foreign key field that is required later
BEGIN;
ALTER TABLE "desk_ticket" ADD COLUMN "team_id" bigint NULL;
ALTER TABLE "desk_ticket" ADD CONSTRAINT "desk_ticket_team_fk" FOREIGN KEY ("team_id") REFERENCES "desk_team" ("id") DEFERRABLE INITIALLY DEFERRED;
COMMIT;
-- >>> B:set-not-null-scan django: null=False
BEGIN;
UPDATE "desk_ticket" SET "note" = '' WHERE "note" IS NULL; SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE "desk_ticket" ALTER COLUMN "note" SET NOT NULL;
COMMIT;
-- >>> C django: AddIndexConcurrently
CREATE INDEX CONCURRENTLY "desk_ticket_closed_idx" ON "desk_ticket" ("closed_at" DESC);
-- >>> A django: AddConstraintNotValid
ALTER TABLE "desk_ticket" ADD CONSTRAINT "priority_range" CHECK ("priority" BETWEEN 1 AND 5) NOT VALID;
-- >>> C django: ValidateConstraint
ALTER TABLE "desk_ticket" VALIDATE CONSTRAINT "priority_range";
-- >>> D:drop-table django: DeleteModel
DROP TABLE "desk_label" CASCADE;
-- >>> A django: the journal of migrations
INSERT INTO "django_migrations" ("app", "name", "applied") VALUES ('desk', '0007_x', '2026-03-01T10:00:00+00:00') RETURNING "django_migrations"."id";
-- >>> B:create-index-not-concurrent django: db_index=True on an existing field
CREATE INDEX "desk_ticket_title_9c1" ON "desk_ticket" ("title");
CREATE INDEX "desk_ticket_title_9c1_like" ON "desk_ticket" ("title" varchar_pattern_ops);
-- >>> D:rename django: RenameField
ALTER TABLE "desk_ticket" RENAME COLUMN "note" TO "remark";
-- >>> B:add-column-rewrite django: GeneratedField, stored
ALTER TABLE "desk_ticket" ADD COLUMN "slug" varchar(200) GENERATED ALWAYS AS (lower("title")) STORED;
-- >>> D:drop-column django: AlterField from one to many
CREATE TABLE "desk_ticket_tags" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "ticket_id" bigint NOT NULL, "tag_id" bigint NOT NULL);
ALTER TABLE "desk_ticket" DROP COLUMN "tag_id" CASCADE;
-- >>> D:drop-column django: set constraints, then drop of a foreign key and its column
SET CONSTRAINTS "desk_ticket_tag_fk" IMMEDIATE; ALTER TABLE "desk_ticket" DROP CONSTRAINT "desk_ticket_tag_fk"; ALTER TABLE "desk_ticket" DROP COLUMN "tag_id" CASCADE;
-- >>> A prisma: init
-- CreateEnum
CREATE TYPE "Role" AS ENUM ('USER', 'ADMIN');
-- CreateTable
CREATE TABLE "User" (
    "id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role" "Role" NOT NULL DEFAULT 'USER',
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT "User_pkey" PRIMARY KEY ("id")
);
-- CreateTable
CREATE TABLE "Post" ("id" SERIAL NOT NULL, "authorId" TEXT NOT NULL, CONSTRAINT "Post_pkey" PRIMARY KEY ("id"));
-- CreateIndex
CREATE UNIQUE INDEX "User_email_key" ON "User"("email");
-- AddForeignKey
ALTER TABLE "Post" ADD CONSTRAINT "Post_authorId_fkey" FOREIGN KEY ("authorId") REFERENCES "User"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
-- >>> B:create-index-not-concurrent prisma: a unique field
-- AlterTable
ALTER TABLE "User" ADD COLUMN     "handle" TEXT;
-- CreateIndex
CREATE UNIQUE INDEX "User_handle_key" ON "User"("handle");
-- >>> D:add-required-column prisma: a required field
/*
  Warnings:
  - Added the required column `country` to the `User` table without a default value.
*/
-- AlterTable
ALTER TABLE "User" ADD COLUMN     "country" TEXT NOT NULL;
-- >>> A prisma: optional fields
-- AlterTable
ALTER TABLE "User" ADD COLUMN     "bio" TEXT,
ADD COLUMN     "score" DOUBLE PRECISION NOT NULL DEFAULT 0,
ADD COLUMN     "labels" TEXT[] DEFAULT ARRAY[]::TEXT[];
-- >>> A prisma: a value of an enum
-- AlterEnum
ALTER TYPE "Role" ADD VALUE 'OWNER';
-- >>> B:change-type-rewrite prisma: an enum that loses a value
-- AlterEnum
BEGIN;
CREATE TYPE "Role_new" AS ENUM ('USER', 'OWNER');
ALTER TABLE "User" ALTER COLUMN "role" DROP DEFAULT;
ALTER TABLE "User" ALTER COLUMN "role" TYPE "Role_new" USING ("role"::text::"Role_new");
ALTER TYPE "Role" RENAME TO "Role_old";
ALTER TYPE "Role_new" RENAME TO "Role";
DROP TYPE "Role_old";
ALTER TABLE "User" ALTER COLUMN "role" SET DEFAULT 'USER';
COMMIT;
-- >>> B:change-type-rewrite prisma: Int to BigInt
ALTER TABLE "Post" ALTER COLUMN "views" SET DATA TYPE BIGINT;
-- >>> B:drop-index-not-concurrent prisma: DropIndex
-- DropIndex
DROP INDEX "Post_authorId_idx";
-- >>> D:drop-constraint prisma: DropForeignKey
-- DropForeignKey
ALTER TABLE "Post" DROP CONSTRAINT "Post_authorId_fkey";
-- >>> D:drop-column prisma: a field that goes
ALTER TABLE "Post" DROP COLUMN "legacy", ADD COLUMN     "subtitle" TEXT;
-- >>> B:add-primary-key prisma: another id
ALTER TABLE "Tag" DROP CONSTRAINT "Tag_pkey", ADD CONSTRAINT "Tag_pkey" PRIMARY KEY ("id");
-- >>> A prisma: RenameForeignKey and RenameIndex
ALTER TABLE "Post" RENAME CONSTRAINT "Post_author_fkey" TO "Post_authorId_fkey";
ALTER INDEX "Post_author_idx" RENAME TO "Post_authorId_idx";
-- >>> A alembic: a column and its version
BEGIN;
-- Running upgrade 1975ea83b712 -> ae1027a6acf
ALTER TABLE account ADD COLUMN last_transaction_date TIMESTAMP WITHOUT TIME ZONE;
UPDATE alembic_version SET version_num='ae1027a6acf' WHERE alembic_version.version_num = '1975ea83b712';
COMMIT;
-- >>> A alembic: the first one
BEGIN;
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE account (
    id SERIAL NOT NULL,
    name VARCHAR(50) NOT NULL,
    description TEXT,
    PRIMARY KEY (id),
    CHECK (name <> ''),
    UNIQUE (name)
);
CREATE INDEX ix_account_name ON account (name);
INSERT INTO alembic_version (version_num) VALUES ('1975ea83b712') RETURNING alembic_version.version_num;
COMMIT;
-- >>> B:create-index-not-concurrent alembic: op.create_index
BEGIN;
CREATE INDEX ix_account_kind ON account (kind);
UPDATE alembic_version SET version_num='b1' WHERE alembic_version.version_num = 'a1';
COMMIT;
-- >>> C alembic: autocommit_block
BEGIN;
COMMIT;
CREATE INDEX CONCURRENTLY ix_account_kind ON account (kind);
BEGIN;
UPDATE alembic_version SET version_num='b1' WHERE alembic_version.version_num = 'a1';
COMMIT;
-- >>> B:change-type-rewrite alembic: alter_column type_
ALTER TABLE account ALTER COLUMN amount TYPE NUMERIC(18, 4) USING amount::numeric;
-- >>> D:drop-object alembic: an enum that goes
DROP TYPE accountkind;
-- >>> B:set-not-null-scan alembic: nullable=False
ALTER TABLE account ALTER COLUMN description SET NOT NULL;
-- >>> B:add-constraint-scan alembic: create_check_constraint
ALTER TABLE account ADD CONSTRAINT ck_amount CHECK (amount >= 0);
-- >>> A alembic: create_check_constraint, not valid
ALTER TABLE account ADD CONSTRAINT ck_amount CHECK (amount >= 0) NOT VALID;
-- >>> A alembic: server_default
ALTER TABLE account ALTER COLUMN amount SET DEFAULT 0;
-- >>> A alembic: bulk_insert
INSERT INTO currency (code, digits) VALUES ('EUR', 2);
INSERT INTO currency (code, digits) VALUES ('JPY', 0);
