CREATE TABLE "spans" (
	"conversation_id" text NOT NULL,
	"cycle_id" text,
	"operation_id" text,
	"trace_id" text NOT NULL,
	"span_id" text NOT NULL,
	"name" text NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL,
	"marks" jsonb NOT NULL,
	"attributes" jsonb NOT NULL
);
--> statement-breakpoint
ALTER TABLE "spans" ADD CONSTRAINT "spans_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "spans_of_cycle" ON "spans" USING btree ("conversation_id","cycle_id","started_at");--> statement-breakpoint
CREATE INDEX "spans_age" ON "spans" USING brin ("started_at");