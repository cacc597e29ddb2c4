CREATE TABLE "provider_models" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"list" jsonb NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
