CREATE TABLE "conversations" (
	"id" text PRIMARY KEY NOT NULL,
	"slug" text NOT NULL,
	"title" text NOT NULL,
	"titled" boolean NOT NULL,
	"cwd" text NOT NULL,
	"host" text NOT NULL,
	"model" text NOT NULL,
	"scripted" boolean NOT NULL,
	"sandbox" jsonb NOT NULL,
	"initial_mode" text NOT NULL,
	"parent_conversation_id" text,
	"continued_from" text,
	"user_initiated" boolean NOT NULL,
	"state" text DEFAULT 'idle' NOT NULL,
	"state_data" jsonb NOT NULL,
	"state_updated_at" timestamp (3) with time zone NOT NULL,
	"mode" text NOT NULL,
	"usage" jsonb NOT NULL,
	"machine" jsonb NOT NULL,
	"revision" bigint NOT NULL,
	"revision_id" text,
	"awaits" text,
	"claim" jsonb,
	"restarts" integer DEFAULT 0 NOT NULL,
	"last_event" bigint NOT NULL,
	"archived" boolean DEFAULT false NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "conversations_slug_unique" UNIQUE("slug")
);
--> statement-breakpoint
CREATE TABLE "events" (
	"conversation_id" text NOT NULL,
	"number" bigint NOT NULL,
	"name" text NOT NULL,
	"data" jsonb,
	"message_id" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "events_conversation_id_number_pk" PRIMARY KEY("conversation_id","number")
);
--> statement-breakpoint
CREATE TABLE "image_refs" (
	"conversation_id" text NOT NULL,
	"hash" text NOT NULL,
	CONSTRAINT "image_refs_conversation_id_hash_pk" PRIMARY KEY("conversation_id","hash")
);
--> statement-breakpoint
CREATE TABLE "images" (
	"hash" text PRIMARY KEY NOT NULL,
	"media_type" text NOT NULL,
	"width" integer NOT NULL,
	"height" integer NOT NULL,
	"bytes" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"conversation_id" text NOT NULL,
	"id" text NOT NULL,
	"sequence_id" integer NOT NULL,
	"message_type" text NOT NULL,
	"actor_kind" text NOT NULL,
	"content" jsonb NOT NULL,
	"display_data" jsonb,
	"usage_data" jsonb,
	"cycle_id" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "messages_conversation_id_id_pk" PRIMARY KEY("conversation_id","id"),
	CONSTRAINT "messages_sequence" UNIQUE("conversation_id","sequence_id")
);
--> statement-breakpoint
CREATE TABLE "queue" (
	"conversation_id" text NOT NULL,
	"message_id" text NOT NULL,
	"position" integer NOT NULL,
	"delivery" text NOT NULL,
	"text" text NOT NULL,
	"images" jsonb NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "queue_conversation_id_message_id_pk" PRIMARY KEY("conversation_id","message_id")
);
--> statement-breakpoint
ALTER TABLE "conversations" ADD CONSTRAINT "conversations_parent_conversation_id_conversations_id_fk" FOREIGN KEY ("parent_conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "conversations" ADD CONSTRAINT "conversations_continued_from_conversations_id_fk" FOREIGN KEY ("continued_from") REFERENCES "public"."conversations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "image_refs" ADD CONSTRAINT "image_refs_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "messages" ADD CONSTRAINT "messages_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "queue" ADD CONSTRAINT "queue_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "conversations_newest" ON "conversations" USING btree ("created_at","id") WHERE parent_conversation_id is null;--> statement-breakpoint
CREATE INDEX "conversations_children" ON "conversations" USING btree ("parent_conversation_id","created_at","id");--> statement-breakpoint
CREATE INDEX "conversations_continued" ON "conversations" USING btree ("continued_from","created_at","id");--> statement-breakpoint
CREATE INDEX "image_refs_hash" ON "image_refs" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "messages_tool_call" ON "messages" USING btree ("conversation_id",md5(content -> 0 ->> 'toolCallId')) WHERE message_type = 'tool';