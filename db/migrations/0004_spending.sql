CREATE TABLE "spending" (
	"conversation_id" text NOT NULL,
	"day" date NOT NULL,
	"model" text NOT NULL,
	"input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"cache_read_tokens" bigint NOT NULL,
	"cache_creation_tokens" bigint NOT NULL,
	"nanodollars" bigint NOT NULL,
	"unpriced_requests" bigint NOT NULL,
	CONSTRAINT "spending_conversation_id_day_model_pk" PRIMARY KEY("conversation_id","day","model")
);
--> statement-breakpoint
CREATE INDEX "spending_day" ON "spending" USING btree ("day");
--> statement-breakpoint
-- Owns: the fence, as in 0001_commit_revisions.sql, which it replaces. Added are `charges` and `sums` of p:
--
--      charges: [{ number, day, inputTokens, …, nanodollars }], of the revisions by their number,
--      sums: { conversation: boolean, day: "YYYY-MM-DD" | null }, what the claimant wants to know before it asks a model
--
-- Charges are added to `spending` with the revision that has them: exactly once, whoever repeats the commit. The event
-- `spending.changed` tells the new sum, in the stream of the parent for a sub-agent. If the claim is granted, the answer
-- has the sums.
CREATE OR REPLACE FUNCTION commit_revisions(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r conversations%ROWTYPE;
  child conversations%ROWTYPE;
  existed boolean;
  create_input constant jsonb := p -> 'createInput';
  entry jsonb;
  number bigint;
  last_revision bigint;
  last_id text;
  last_at timestamptz;
  new_title text;
  new_archived boolean;
  changed boolean := false;
  attempt integer := 0;
  claimant constant jsonb := p -> 'claim';
  awaited text;
  granted boolean := false;
  last_read constant jsonb := p -> 'lastRead';
  new_messages jsonb;
  root text;
  spent jsonb;
  parent conversations%ROWTYPE;
  wanted constant jsonb := p -> 'sums';
  sums jsonb;
BEGIN
  -- A sub-agent's charges are told in its parent's stream. The parent's row is locked first, as archiving does it: no two
  -- commits of a family wait for each other in a circle.
  IF p -> 'charges' <> '[]' THEN
    PERFORM FROM conversations
    WHERE id = coalesce(
      (SELECT parent_conversation_id FROM conversations WHERE id = p ->> 'id'), create_input ->> 'parentId')
    FOR NO KEY UPDATE;
  END IF;

  LOOP
    -- NO KEY: commits of one conversation wait for each other, but a sub-agent's foreign key does not wait for them.
    SELECT * INTO r FROM conversations WHERE id = p ->> 'id' FOR NO KEY UPDATE;
    existed := FOUND;
    IF NOT existed THEN
      r.revision := 0;
      r.restarts := 0;
      -- There is no row to follow from: the row or its parent is deleted.
      IF jsonb_typeof(create_input) IS DISTINCT FROM 'object'
        OR (create_input ->> 'parentId' IS NOT NULL
          AND NOT EXISTS (SELECT FROM conversations WHERE id = create_input ->> 'parentId' FOR KEY SHARE))
      THEN
        RETURN jsonb_build_object('confirmed', 0, 'revisionId', NULL, 'awaits', NULL, 'restarts', r.restarts, 'diverged', true);
      END IF;
    END IF;

    last_revision := r.revision;
    last_id := r.revision_id;
    changed := false;
    new_archived := NULL;
    new_title := NULL;
    FOR entry IN SELECT value FROM jsonb_array_elements(p -> 'revisions') LOOP
      number := (entry ->> 'number')::bigint;
      CONTINUE WHEN number < r.revision;
      IF number = r.revision AND entry ->> 'id' = r.revision_id THEN
        CONTINUE;
      END IF;
      IF number <> last_revision + 1 OR entry ->> 'previous' IS DISTINCT FROM last_id THEN
        RETURN jsonb_build_object(
          'confirmed', r.revision, 'revisionId', r.revision_id, 'awaits', r.awaits, 'restarts', r.restarts, 'diverged', true);
      END IF;
      last_revision := number;
      last_id := entry ->> 'id';
      last_at := (entry ->> 'at')::timestamptz;
      IF entry ->> 'archived' IS NOT NULL THEN
        new_archived := (entry ->> 'archived')::boolean;
        changed := true;
      END IF;
      new_title := coalesce(new_title, entry ->> 'title');
    END LOOP;

    EXIT WHEN last_revision = r.revision OR existed;
    -- The id or the slug may have been taken meanwhile: then read again, and try another slug.
    INSERT INTO conversations (
      id, slug, title, titled, cwd, host, model, scripted, sandbox, initial_mode, parent_conversation_id,
      continued_from, user_initiated, state_data, state_updated_at, mode, usage, machine, revision, last_event, created_at, updated_at)
    SELECT
      p ->> 'id',
      CASE attempt
        WHEN 0 THEN create_input ->> 'slug'
        ELSE concat(create_input ->> 'slug', '-', left(md5(concat(p ->> 'id', attempt / 8)), 3 + attempt))
      END,
      create_input ->> 'title', (create_input ->> 'titled')::boolean, create_input ->> 'cwd', create_input ->> 'host',
      create_input ->> 'model', (create_input ->> 'scripted')::boolean, create_input -> 'sandbox',
      create_input ->> 'initialMode', create_input ->> 'parentId',
      (SELECT id FROM conversations WHERE id = create_input ->> 'continuedFrom' FOR KEY SHARE),
      (create_input ->> 'userInitiated')::boolean, '{}', last_at, p ->> 'mode', p -> 'usage', p -> 'machine', 0, 0,
      (p #>> '{revisions,0,at}')::timestamptz, last_at
    ON CONFLICT DO NOTHING
    RETURNING * INTO r;
    EXIT WHEN FOUND;
    attempt := attempt + 1;
  END LOOP;

  awaited := CASE WHEN last_revision > r.revision THEN p ->> 'awaits' ELSE r.awaits END;
  -- If several runs claim one order, the first that comes performs it.
  IF jsonb_typeof(claimant) = 'object' AND claimant ->> 'operationId' = awaited THEN
    -- An operation that was ordered before the last restart of the whole system is not begun after it.
    granted := (claimant ->> 'restarts')::integer >= r.restarts AND (
      r.claim IS NULL
      OR r.claim ->> 'operationId' <> awaited
      OR (r.claim ->> 'dispatchAttempt')::integer < (claimant ->> 'dispatchAttempt')::integer
      OR r.claim ->> 'by' = claimant ->> 'by');
    r.claim := CASE WHEN granted THEN claimant ELSE r.claim END;
    awaited := CASE WHEN granted THEN awaited END;
  END IF;

  IF last_revision > r.revision THEN
    -- Archiving and un-archiving apply to the sub-agents, too. They do not touch the sub-agents' own revisions. This
    -- comes before the charges: everyone locks conversations first, and then the rows of charges.
    IF new_archived IS NOT NULL THEN
      FOR child IN
        UPDATE conversations SET archived = new_archived, last_event = last_event + 1, updated_at = last_at
        WHERE parent_conversation_id = r.id AND archived <> new_archived
        RETURNING *
      LOOP
        INSERT INTO events (conversation_id, number, name, data, created_at)
        VALUES (child.id, child.last_event, 'conversation.changed',
          jsonb_build_object('title', child.title, 'archived', child.archived), last_at);
        PERFORM pg_notify('bedrock_commits', jsonb_build_object(
          'c', child.id, 's', child.revision, 'e', child.last_event, 'parent', r.id)::text);
      END LOOP;
    END IF;

    -- In order of the days, so that the commits of a family do not wait for each other in a circle.
    IF p -> 'charges' <> '[]' THEN
      root := coalesce(r.parent_conversation_id, r.id);
      INSERT INTO spending AS s (
        conversation_id, day, model, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens,
        nanodollars, unpriced_requests)
      SELECT
        root, c.day, r.model, sum(c."inputTokens"), sum(c."outputTokens"), sum(c."cacheReadTokens"),
        sum(c."cacheCreationTokens"), coalesce(sum(c.nanodollars), 0), count(*) FILTER (WHERE c.nanodollars IS NULL)
      FROM jsonb_to_recordset(p -> 'charges') AS c (
        number bigint, day date, "inputTokens" bigint, "outputTokens" bigint, "cacheReadTokens" bigint,
        "cacheCreationTokens" bigint, nanodollars bigint)
      WHERE c.number > r.revision
      GROUP BY c.day ORDER BY c.day
      ON CONFLICT (conversation_id, day, model) DO UPDATE SET
        input_tokens = s.input_tokens + excluded.input_tokens,
        output_tokens = s.output_tokens + excluded.output_tokens,
        cache_read_tokens = s.cache_read_tokens + excluded.cache_read_tokens,
        cache_creation_tokens = s.cache_creation_tokens + excluded.cache_creation_tokens,
        nanodollars = s.nanodollars + excluded.nanodollars,
        unpriced_requests = s.unpriced_requests + excluded.unpriced_requests;
      SELECT jsonb_build_object(
        'tokens', sum(input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens),
        'dollars', CASE WHEN sum(unpriced_requests) = 0 THEN sum(nanodollars) / 1e9 END)
      INTO spent FROM spending WHERE conversation_id = root;
    END IF;
    -- Before the events of the revisions: a client that ends with a state has the cost of what led to it.
    IF spent IS NOT NULL AND root = r.id THEN
      r.last_event := r.last_event + 1;
      INSERT INTO events (conversation_id, number, name, data, created_at)
      VALUES (r.id, r.last_event, 'spending.changed', spent, last_at);
    ELSIF spent IS NOT NULL THEN
      UPDATE conversations SET last_event = last_event + 1 WHERE id = root RETURNING * INTO parent;
      INSERT INTO events (conversation_id, number, name, data, created_at)
      VALUES (root, parent.last_event, 'spending.changed', spent, last_at);
      PERFORM pg_notify('bedrock_commits', jsonb_build_object(
        'c', root, 's', parent.revision, 'e', parent.last_event, 'parent', NULL)::text);
    END IF;

    FOR entry IN SELECT value FROM jsonb_array_elements(p -> 'revisions') LOOP
      CONTINUE WHEN (entry ->> 'number')::bigint <= r.revision;
      INSERT INTO messages (
        conversation_id, id, sequence_id, message_type, actor_kind, content, display_data, usage_data, cycle_id,
        created_at)
      SELECT r.id, m.id, m.sequence, m.type, m.actor, m.content, m.display, m.usage, m."cycleId", m."createdAt"
      FROM jsonb_to_recordset(entry -> 'messages') AS m (
        id text, sequence integer, type text, actor text, content jsonb, display jsonb, usage jsonb,
        "cycleId" text, "createdAt" timestamptz);

      INSERT INTO events (conversation_id, number, name, data, message_id, created_at)
      SELECT
        r.id, r.last_event + e.place, e.value ->> 'name', e.value -> 'data', e.value ->> 'messageId',
        (entry ->> 'at')::timestamptz
      FROM jsonb_array_elements(entry -> 'events') WITH ORDINALITY AS e (value, place);
      r.last_event := r.last_event + jsonb_array_length(entry -> 'events');
    END LOOP;

    r.archived := coalesce(new_archived, r.archived);
    IF NOT r.titled AND new_title IS NOT NULL THEN
      r.title := new_title;
      r.titled := true;
      changed := true;
    END IF;
    IF changed THEN
      r.last_event := r.last_event + 1;
      INSERT INTO events (conversation_id, number, name, data, created_at)
      VALUES (r.id, r.last_event, 'conversation.changed',
        jsonb_build_object('title', r.title, 'archived', r.archived), last_at);
    END IF;

    IF p -> 'queue' = '[]' THEN
      IF existed THEN
        DELETE FROM queue WHERE conversation_id = r.id;
      END IF;
    ELSIF (
      SELECT jsonb_agg(jsonb_build_array(message_id, delivery, text, images, created_at) ORDER BY position)
      FROM queue WHERE conversation_id = r.id
    ) IS DISTINCT FROM (
      SELECT jsonb_agg(jsonb_build_array(q."messageId", q.delivery, q.text, q.images, q."createdAt") ORDER BY q.position)
      FROM jsonb_to_recordset(p -> 'queue') AS q (
        "messageId" text, position integer, delivery text, text text, images jsonb, "createdAt" timestamptz)
    ) THEN
      DELETE FROM queue WHERE conversation_id = r.id;
      INSERT INTO queue (conversation_id, message_id, position, delivery, text, images, created_at)
      SELECT r.id, q."messageId", q.position, q.delivery, q.text, q.images, q."createdAt"
      FROM jsonb_to_recordset(p -> 'queue') AS q (
        "messageId" text, position integer, delivery text, text text, images jsonb, "createdAt" timestamptz);
    END IF;

    INSERT INTO image_refs (conversation_id, hash)
    SELECT r.id, value FROM jsonb_array_elements_text(p -> 'images') ON CONFLICT DO NOTHING;

    UPDATE conversations SET
      title = r.title, titled = r.titled, archived = r.archived, state = p ->> 'state',
      state_data = p -> 'stateData',
      state_updated_at = CASE
        WHEN r.state = p ->> 'state' AND r.state_data = p -> 'stateData' THEN r.state_updated_at ELSE last_at END,
      mode = p ->> 'mode', usage = p -> 'usage', machine = p -> 'machine', revision = last_revision, revision_id = last_id,
      awaits = p ->> 'awaits', claim = r.claim, last_event = r.last_event, updated_at = last_at
    WHERE id = r.id;

    PERFORM pg_notify('bedrock_commits', jsonb_build_object(
      'c', r.id, 's', last_revision, 'e', r.last_event, 'parent', r.parent_conversation_id)::text);
  ELSIF granted THEN
    UPDATE conversations SET claim = r.claim WHERE id = r.id;
  END IF;

  IF granted AND jsonb_typeof(last_read) = 'object' AND EXISTS (
    SELECT FROM messages
    WHERE conversation_id = r.id AND sequence_id = (last_read ->> 'sequence')::integer AND id = last_read ->> 'id')
  THEN
    SELECT coalesce(jsonb_agg(to_jsonb(m) ORDER BY m.sequence_id), '[]') INTO new_messages
    FROM messages AS m
    WHERE conversation_id = r.id AND sequence_id > (last_read ->> 'sequence')::integer
    -- One value of jsonb is bounded: a claimant that lacks more messages reads them in pages.
    HAVING count(*) <= 100;
  END IF;

  IF granted AND jsonb_typeof(wanted) = 'object' THEN
    SELECT jsonb_build_object(
      'conversation', CASE WHEN (wanted ->> 'conversation')::boolean THEN (
        SELECT jsonb_build_object(
          'tokens', coalesce(sum(s.input_tokens + s.output_tokens + s.cache_read_tokens + s.cache_creation_tokens), 0),
          'nanodollars', coalesce(sum(s.nanodollars), 0),
          'isPartlyUnknown', coalesce(sum(s.unpriced_requests), 0) > 0) FROM spending AS s WHERE s.conversation_id = coalesce(r.parent_conversation_id, r.id)) END,
      'day', CASE WHEN wanted ->> 'day' IS NOT NULL THEN (
        SELECT jsonb_build_object(
          'tokens', coalesce(sum(s.input_tokens + s.output_tokens + s.cache_read_tokens + s.cache_creation_tokens), 0),
          'nanodollars', coalesce(sum(s.nanodollars), 0),
          'isPartlyUnknown', coalesce(sum(s.unpriced_requests), 0) > 0) FROM spending AS s WHERE s.day = (wanted ->> 'day')::date) END)
    INTO sums;
  END IF;

  RETURN jsonb_build_object(
    'confirmed', last_revision, 'revisionId', last_id, 'awaits', awaited, 'restarts', r.restarts, 'diverged', false,
    'newMessages', new_messages, 'sums', sums);
END
$$;
