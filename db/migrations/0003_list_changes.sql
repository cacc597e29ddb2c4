CREATE TABLE "removals" (
	"conversation_id" text PRIMARY KEY NOT NULL,
	"changed" "xid8" DEFAULT pg_current_xact_id() NOT NULL,
	"removed_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "conversations" ADD COLUMN "changed" "xid8" DEFAULT pg_current_xact_id() NOT NULL;--> statement-breakpoint
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changed := pg_current_xact_id();
  RETURN NEW;
END
$$;
--> statement-breakpoint
CREATE TRIGGER note_change BEFORE UPDATE ON conversations FOR EACH ROW EXECUTE FUNCTION note_change();
--> statement-breakpoint
CREATE FUNCTION note_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO removals (conversation_id) VALUES (OLD.id)
  ON CONFLICT (conversation_id) DO UPDATE SET changed = pg_current_xact_id(), removed_at = now();
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER note_removal AFTER DELETE ON conversations FOR EACH ROW
  WHEN (OLD.parent_conversation_id IS NULL) EXECUTE FUNCTION note_removal();
