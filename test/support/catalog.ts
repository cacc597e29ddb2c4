/**
 * Owns: what a database offers to statements that were written for it (docs/operations.md, "What a release may change"):
 * its tables, constraints and functions, and what a migration takes away from them or asks in addition.
 * Not here: what functions and triggers do.
 */
import type { Sql, TransactionSql } from "postgres";

type Column = {
  readonly name: string;
  readonly type: string;
  /** A statement that does not know the column may leave it out. */
  readonly optional: boolean;
  readonly nullable: boolean;
};

type Constraint = {
  readonly name: string;
  readonly table: string;
  readonly kind: "check" | "unique" | "exclusion" | "foreign key";
  /** The columns that it looks at; `*`: an expression. */
  readonly columns: readonly string[];
  /** Of a foreign key: the table whose rows it keeps from being deleted; null: it goes with them, or keeps none. */
  readonly keeps: string | null;
};

export type Catalog = {
  readonly columns: readonly Column[];
  readonly constraints: readonly Constraint[];
  /** Name, arguments and result. */
  readonly functions: readonly { readonly name: string; readonly signature: string }[];
};

export async function catalogOf(sql: Sql | TransactionSql): Promise<Catalog> {
  const columns = await sql<Column[]>`
    select c.relname || '.' || a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
      not a.attnotnull or a.atthasdef or a.attidentity <> '' as optional, not a.attnotnull as nullable
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and a.attnum > 0
      and not a.attisdropped
    order by 1`;
  const constraints = await sql<Constraint[]>`
    select n.conname as name, t.relname as table,
      case n.contype when 'c' then 'check' when 'f' then 'foreign key' else 'exclusion' end as kind,
      to_jsonb(array(select t.relname || '.' || a.attname from unnest(n.conkey) k
        join pg_attribute a on a.attrelid = n.conrelid and a.attnum = k order by 1)) as columns,
      case when n.contype = 'f' and n.confdeltype in ('a', 'r') then r.relname end as keeps
    from pg_constraint n join pg_class t on t.oid = n.conrelid left join pg_class r on r.oid = n.confrelid
    where n.connamespace = 'public'::regnamespace and n.contype in ('c', 'f', 'x')
    union all
    select i.relname, t.relname, 'unique',
      to_jsonb(array(select case when k = 0 then '*' else t.relname || '.' || a.attname end from unnest(x.indkey) k
        left join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k order by 1)), null
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    where x.indisunique and t.relnamespace = 'public'::regnamespace
    order by 1`;
  const functions = await sql<{ name: string; signature: string }[]>`
    select p.proname as name,
      p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ') ' || pg_get_function_result(p.oid) as signature
    from pg_proc p where p.pronamespace = 'public'::regnamespace order by 2`;
  return { columns, constraints, functions };
}

/** A sentence for each thing on which statements for the database as it was may fail. */
export function contractions(before: Catalog, after: Catalog): readonly string[] {
  const tables = new Set(before.columns.map(({ name }) => tableOf(name)));
  const known = new Set(before.columns.map(({ name }) => name));
  const columns = before.columns.flatMap((old) => {
    const now = after.columns.find(({ name }) => name === old.name);
    if (now === undefined) return [`The column ${old.name} is gone.`];
    if (now.type !== old.type) return [`The column ${old.name} is ${now.type}, and was ${old.type}.`];
    const isStricter = (old.nullable && !now.nullable) || (old.optional && !now.optional);
    return isStricter ? [`The column ${old.name} must have a value.`] : [];
  });
  const required = after.columns
    .filter(({ name, optional }) => !optional && !known.has(name) && tables.has(tableOf(name)))
    .map(({ name }) => `The new column ${name} must have a value.`);
  const added = after.constraints.filter(({ name }) => !before.constraints.some((old) => old.name === name));
  const limits = added.flatMap(({ name, table, columns: of, keeps }) => {
    const isOnOld = tables.has(table) && of.some((column) => known.has(column) || column === "*");
    if (isOnOld) return [`The constraint ${name} limits rows of ${table}.`];
    return keeps !== null && tables.has(keeps) ? [`The constraint ${name} keeps rows of ${keeps}.`] : [];
  });
  // `on conflict` needs the index that it names.
  const gone = before.constraints
    .filter(({ kind, name }) => kind === "unique" && !after.constraints.some((now) => now.name === name))
    .map(({ name }) => `The unique index ${name} is gone.`);
  const functions = before.functions.flatMap(({ name, signature }) => {
    const now = after.functions.filter((each) => each.name === name).map((each) => each.signature);
    if (!now.includes(signature)) return [`The function ${signature} is gone.`];
    const had = before.functions.filter((each) => each.name === name).length;
    return now.length > had ? [`There is one more function ${name}: a call may mean either.`] : [];
  });
  return [...columns, ...required, ...limits, ...gone, ...functions];
}

const tableOf = (column: string): string => column.slice(0, column.indexOf("."));
