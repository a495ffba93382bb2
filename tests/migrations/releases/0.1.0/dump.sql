--
-- PostgreSQL database dump
--


-- Dumped from database version 18.6
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: namespace; Type: TYPE; Schema: public; Owner: -
--

CREATE TYPE public.namespace AS RANGE (
    subtype = text,
    multirange_type_name = public.namespace_multirange,
    collation = pg_catalog."C"
);


--
-- Name: split_words(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.split_words(said text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN regexp_replace(regexp_replace(regexp_replace(regexp_replace(said, '([[:lower:][:digit:]])([[:upper:]])'::text, '\1 \2'::text, 'g'::text), '([[:upper:]])([[:upper:]][[:lower:]])'::text, '\1 \2'::text, 'g'::text), '([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])'::text, ' \1 '::text, 'g'::text), '[^[:alnum:]]+'::text, ' '::text, 'g'::text);


--
-- Name: message_words(text, jsonb); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.message_words(body text, payload jsonb) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (to_tsvector('simple'::regconfig, public.split_words(COALESCE(body, (payload ->> 'summary'::text), ''::text))) || to_tsvector('simple'::regconfig, regexp_replace(COALESCE(body, (payload ->> 'summary'::text), ''::text), '[^[:alnum:]]+'::text, ' '::text, 'g'::text)));


--
-- Name: searched_words(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.searched_words(sought text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (plainto_tsquery('simple'::regconfig, public.split_words(sought)) || plainto_tsquery('simple'::regconfig, regexp_replace(sought, '[^[:alnum:]]+'::text, ' '::text, 'g'::text)));


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: agents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.agents (
    realm_id integer NOT NULL,
    agent_id bigint NOT NULL,
    handle text NOT NULL,
    kind text NOT NULL,
    box_id bigint,
    label text,
    role text,
    addresses text[] NOT NULL,
    harness text,
    cwd text,
    title text,
    checkin_key text,
    state text DEFAULT 'unknown'::text NOT NULL,
    state_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    offline_since timestamp with time zone,
    wake_rung text,
    wake_outcome text,
    wake_reason text,
    wake_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    retired_at timestamp with time zone,
    CONSTRAINT agents_box_check CHECK (((kind = 'person'::text) = (box_id IS NULL))),
    CONSTRAINT agents_kind_check CHECK ((kind = ANY (ARRAY['session'::text, 'box'::text, 'person'::text]))),
    CONSTRAINT agents_state_check CHECK ((state = ANY (ARRAY['starting'::text, 'idle'::text, 'busy'::text, 'waiting'::text, 'suspended'::text, 'offline'::text, 'unknown'::text])))
);


--
-- Name: agents_agent_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.agents ALTER COLUMN agent_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agents_agent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: audit_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_log (
    audit_id bigint NOT NULL,
    realm text,
    act text NOT NULL,
    target text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: audit_log_audit_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.audit_log ALTER COLUMN audit_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: batch_rooms; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.batch_rooms (
    realm_id integer NOT NULL,
    batch_id bigint NOT NULL,
    conv_id bigint NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    cursor_id bigint NOT NULL,
    CONSTRAINT batch_rooms_range_check CHECK (((first_id <= last_id) AND (last_id <= cursor_id)))
);


--
-- Name: batches; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.batches (
    realm_id integer NOT NULL,
    batch_id bigint NOT NULL,
    agent_id bigint NOT NULL,
    lease text,
    poll_key text,
    handed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    fresh_until timestamp with time zone,
    committed_at timestamp with time zone
);


--
-- Name: batches_batch_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.batches ALTER COLUMN batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.batches_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: conv_members; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conv_members (
    realm_id integer NOT NULL,
    agent_id bigint NOT NULL,
    conv_id bigint NOT NULL,
    last_read_id bigint DEFAULT '0'::bigint NOT NULL,
    read_id bigint DEFAULT '0'::bigint NOT NULL,
    handed_id bigint DEFAULT '0'::bigint NOT NULL,
    replay_until_id bigint DEFAULT '0'::bigint NOT NULL,
    joined_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    left_at timestamp with time zone
);


--
-- Name: conv_messages; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conv_messages (
    realm_id integer NOT NULL,
    id bigint NOT NULL,
    conv_id bigint NOT NULL,
    sender_id bigint,
    sender_kind text NOT NULL,
    box_id bigint,
    selector text,
    client_id text,
    content_hash bytea,
    type text DEFAULT 'note'::text NOT NULL,
    body text,
    payload jsonb,
    size integer NOT NULL,
    urgent boolean DEFAULT false NOT NULL,
    thread_id text,
    in_reply_to bigint,
    relay_of bigint,
    hop_limit smallint DEFAULT '5'::smallint NOT NULL,
    late boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    CONSTRAINT conv_messages_body_check CHECK (((body <> ''::text) OR ((body IS NULL) AND (payload ? 'summary'::text)))),
    CONSTRAINT conv_messages_payload_check CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT conv_messages_sender_check CHECK (((sender_kind = 'system'::text) = (sender_id IS NULL))),
    CONSTRAINT conv_messages_sender_kind_check CHECK ((sender_kind = ANY (ARRAY['session'::text, 'box'::text, 'person'::text, 'system'::text])))
);


--
-- Name: conv_messages_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.conv_messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.conv_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: conversations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conversations (
    realm_id integer NOT NULL,
    conv_id bigint NOT NULL,
    name text NOT NULL,
    title text,
    hidden boolean GENERATED ALWAYS AS (("left"(name, 1) = '@'::text)) STORED,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: conversations_conv_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.conversations ALTER COLUMN conv_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.conversations_conv_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: handle_counters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.handle_counters (
    realm_id integer NOT NULL,
    label text NOT NULL,
    last_n bigint NOT NULL
);


--
-- Name: invites; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.invites (
    realm_id integer NOT NULL,
    invite_id text NOT NULL,
    name text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);


--
-- Name: names; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.names (
    realm_id integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    span public.namespace GENERATED ALWAYS AS (
CASE
    WHEN (kind = 'role'::text) THEN public.namespace((((realm_id)::text || '/'::text) || name), (((realm_id)::text || '/'::text) || name), '[]'::text)
    ELSE public.namespace((((realm_id)::text || '/'::text) || name), ((((realm_id)::text || '/'::text) || name) || '.'::text), '[)'::text)
END) STORED,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT names_kind_check CHECK ((kind = ANY (ARRAY['box'::text, 'person'::text, 'role'::text])))
);


--
-- Name: realms; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.realms (
    realm_id integer NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    keep_days integer,
    CONSTRAINT realms_keep_days_check CHECK ((keep_days >= 1))
);


--
-- Name: realms_realm_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.realms ALTER COLUMN realm_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.realms_realm_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: sweeps; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sweeps (
    name text NOT NULL,
    until timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tokens (
    realm_id integer NOT NULL,
    token_id text NOT NULL,
    name text NOT NULL,
    slot smallint NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT tokens_slot_check CHECK ((slot = ANY (ARRAY[1, 2])))
);


--
-- Name: undelivered; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.undelivered (
    realm_id integer NOT NULL,
    id bigint NOT NULL,
    reason text NOT NULL,
    reported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT undelivered_reason_check CHECK ((reason = ANY (ARRAY['expired'::text, 'retired'::text])))
);


--
-- Name: webhook_rooms; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook_rooms (
    realm_id integer NOT NULL,
    webhook_id text NOT NULL,
    conv_id bigint NOT NULL,
    looked_id bigint NOT NULL,
    nudged_id bigint DEFAULT '0'::bigint NOT NULL,
    told_id bigint DEFAULT '0'::bigint NOT NULL
);


--
-- Name: webhooks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhooks (
    realm_id integer NOT NULL,
    webhook_id text NOT NULL,
    agent_id bigint NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,
    since_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    failure text,
    disabled_at timestamp with time zone
);


--
-- Data for Name: agents; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.agents (realm_id, agent_id, handle, kind, box_id, label, role, addresses, harness, cwd, title, checkin_key, state, state_at, last_seen, offline_since, wake_rung, wake_outcome, wake_reason, wake_at, created_at, retired_at) FROM stdin;
1	1	work3	box	1	\N	\N	{work3,everyone}	\N	\N	\N	\N	unknown	2026-11-30 17:59:10.75154+00	2026-11-30 17:59:10.75154+00	\N	\N	\N	\N	\N	2026-11-30 17:59:10.751541+00	\N
1	2	devmac	box	2	\N	\N	{devmac,everyone}	\N	\N	\N	\N	unknown	2026-11-30 17:59:10.765485+00	2026-11-30 17:59:10.765485+00	\N	\N	\N	\N	\N	2026-11-30 17:59:10.765485+00	\N
1	3	eric	person	\N	\N	\N	{eric,everyone}	\N	\N	\N	\N	unknown	2026-11-30 17:59:10.820202+00	2026-11-30 17:59:10.820202+00	\N	\N	\N	\N	\N	2026-11-30 17:59:10.820202+00	\N
1	4	work3-agent-reach#1	session	1	work3-agent-reach	reach	{work3-agent-reach#1,work3-agent-reach,reach,work3,everyone}	\N	\N	\N	\N	starting	2026-11-30 17:59:10.88377+00	2026-11-30 17:59:10.88377+00	\N	\N	\N	\N	\N	2026-11-30 17:59:10.883771+00	\N
1	6	devmac-agent#1	session	2	devmac-agent	\N	{devmac-agent#1,devmac-agent,devmac,everyone}	\N	\N	\N	\N	starting	2026-11-30 17:59:11.005695+00	2026-11-30 17:59:11.005695+00	\N	\N	\N	\N	\N	2026-11-30 17:59:11.005695+00	\N
1	7	devmac-agent#2	session	2	devmac-agent	\N	{devmac-agent#2,devmac-agent,devmac,everyone}	\N	\N	\N	\N	starting	2026-11-30 17:59:11.066108+00	2026-11-30 17:59:11.066108+00	\N	\N	\N	\N	\N	2026-11-30 17:59:11.066108+00	\N
1	8	devmac-tool#7	session	2	devmac-tool	\N	{devmac-tool#7,devmac-tool,devmac,everyone}	\N	\N	\N	\N	unknown	2026-11-30 17:59:11.540236+00	2026-11-30 17:59:11.540236+00	\N	\N	\N	\N	\N	2026-11-30 17:59:11.540236+00	\N
1	5	work3-agent-reach#2	session	1	work3-agent-reach	reach	{work3-agent-reach#2,work3-agent-reach,reach,work3,everyone}	\N	\N	\N	\N	offline	2026-11-30 17:59:11.95873+00	2026-11-30 17:59:10.944065+00	2026-11-30 17:59:11.95873+00	\N	\N	\N	\N	2026-11-30 17:59:10.944065+00	2026-11-30 17:59:11.95873+00
1	9	gone	box	9	\N	\N	{gone,everyone}	\N	\N	\N	\N	unknown	2026-11-30 17:59:11.962742+00	2026-11-30 17:59:11.962742+00	\N	\N	\N	\N	\N	2026-11-30 17:59:11.962742+00	\N
\.


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.alembic_version (version_num) FROM stdin;
0005
\.


--
-- Data for Name: audit_log; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.audit_log (audit_id, realm, act, target, at) FROM stdin;
1	main	box_added	work3 tok_43886971c8d7f9eb	2026-11-30 17:59:10.760087+00
2	main	box_added	devmac tok_d72d689463fcf6b1	2026-11-30 17:59:10.771265+00
3	main	person_added	eric tok_8ffe9928d5df4432	2026-11-30 17:59:10.826804+00
4	main	box_added	gone tok_cbfdb6f0e8add2cb	2026-11-30 17:59:11.965616+00
5	main	token_revoked	gone tok_cbfdb6f0e8add2cb	2026-11-30 17:59:11.968562+00
\.


--
-- Data for Name: batch_rooms; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.batch_rooms (realm_id, batch_id, conv_id, first_id, last_id, cursor_id) FROM stdin;
1	1	1	16	16	16
1	1	3	14	14	14
1	1	19	18	18	18
1	2	1	16	16	16
1	2	3	14	14	14
1	2	25	1	1	1
1	2	26	7	7	7
1	3	1	16	16	16
1	3	3	14	14	14
1	3	25	1	2	2
1	3	26	7	7	7
1	4	25	1	3	3
1	4	26	7	8	8
1	5	25	2	4	4
1	5	26	8	9	9
1	6	25	5	5	5
1	6	26	10	10	10
\.


--
-- Data for Name: batches; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.batches (realm_id, batch_id, agent_id, lease, poll_key, handed_at, fresh_until, committed_at) FROM stdin;
1	1	6	\N	\N	2026-11-30 17:59:11.89029+00	2026-11-30 18:09:11.890199+00	2026-11-30 17:59:11.8902+00
1	2	7	\N	\N	2026-11-30 17:59:11.893921+00	2026-11-30 18:09:11.893918+00	2026-11-30 17:59:11.893918+00
1	3	8	\N	\N	2026-11-30 17:59:11.896521+00	2026-11-30 18:09:11.896519+00	2026-11-30 17:59:11.896519+00
1	4	6	_g91qD32s5aTQ4y-	\N	2026-11-30 17:59:11.899087+00	2026-11-30 18:59:11.899085+00	\N
1	5	7	botB5hiRQucJgEct	\N	2026-11-30 17:59:11.901534+00	2026-11-30 18:09:11.901532+00	2026-11-30 17:59:11.903693+00
1	6	7	\N	key	2026-11-30 17:59:11.906446+00	2026-11-30 18:09:11.90644+00	2026-11-30 17:59:11.906442+00
\.


--
-- Data for Name: conv_members; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.conv_members (realm_id, agent_id, conv_id, last_read_id, read_id, handed_id, replay_until_id, joined_at, left_at) FROM stdin;
1	1	1	0	0	0	0	2026-11-30 17:59:10.755036+00	\N
1	1	2	0	0	0	0	2026-11-30 17:59:10.756264+00	\N
1	2	3	0	0	0	0	2026-11-30 17:59:10.766398+00	\N
1	2	1	0	0	0	0	2026-11-30 17:59:10.767785+00	\N
1	3	5	0	0	0	0	2026-11-30 17:59:10.821226+00	\N
1	3	1	0	0	0	0	2026-11-30 17:59:10.822775+00	\N
1	4	1	0	0	0	0	2026-11-30 17:59:10.885561+00	\N
1	4	8	0	0	0	0	2026-11-30 17:59:10.887079+00	\N
1	4	2	0	0	0	0	2026-11-30 17:59:10.888746+00	\N
1	4	10	0	0	0	0	2026-11-30 17:59:10.889487+00	\N
1	4	11	0	0	0	0	2026-11-30 17:59:10.889936+00	\N
1	5	1	0	0	0	0	2026-11-30 17:59:10.945047+00	\N
1	5	8	0	0	0	0	2026-11-30 17:59:10.945793+00	\N
1	5	2	0	0	0	0	2026-11-30 17:59:10.946486+00	\N
1	5	10	0	0	0	0	2026-11-30 17:59:10.947118+00	\N
1	5	16	0	0	0	0	2026-11-30 17:59:10.947576+00	\N
1	6	18	0	0	0	0	2026-11-30 17:59:11.011313+00	\N
1	7	18	0	0	0	0	2026-11-30 17:59:11.067826+00	\N
1	7	23	0	0	0	0	2026-11-30 17:59:11.068349+00	\N
1	4	25	0	0	0	0	2026-11-30 17:59:11.116617+00	\N
1	4	26	0	0	0	0	2026-11-30 17:59:11.170454+00	\N
1	5	25	0	0	0	0	2026-11-30 17:59:11.217703+00	\N
1	5	26	0	0	0	0	2026-11-30 17:59:11.266811+00	\N
1	6	25	0	0	0	0	2026-11-30 17:59:11.317392+00	\N
1	6	26	0	0	0	0	2026-11-30 17:59:11.375419+00	\N
1	8	34	0	0	0	0	2026-11-30 17:59:11.541974+00	\N
1	8	35	0	0	0	0	2026-11-30 17:59:11.542483+00	\N
1	3	25	0	0	0	0	2026-11-30 17:59:11.648208+00	\N
1	3	26	0	0	0	0	2026-11-30 17:59:11.69821+00	\N
1	6	1	16	16	0	0	2026-11-30 17:59:11.014312+00	\N
1	6	3	14	14	0	0	2026-11-30 17:59:11.007878+00	\N
1	6	19	18	18	0	0	2026-11-30 17:59:11.011956+00	\N
1	7	1	16	16	0	0	2026-11-30 17:59:11.069024+00	\N
1	7	3	14	14	0	0	2026-11-30 17:59:11.067061+00	\N
1	8	1	16	16	0	0	2026-11-30 17:59:11.543134+00	\N
1	8	3	14	14	0	0	2026-11-30 17:59:11.541308+00	\N
1	8	25	2	2	0	0	2026-11-30 17:59:11.545984+00	\N
1	7	25	5	5	0	0	2026-11-30 17:59:11.426292+00	\N
1	7	26	10	10	0	0	2026-11-30 17:59:11.486406+00	\N
1	8	26	7	7	0	0	2026-11-30 17:59:11.599441+00	2026-11-30 17:59:11.953865+00
1	9	1	16	0	0	16	2026-11-30 17:59:11.963632+00	\N
1	9	42	0	0	0	0	2026-11-30 17:59:11.96418+00	\N
\.


--
-- Data for Name: conv_messages; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.conv_messages (realm_id, id, conv_id, sender_id, sender_kind, box_id, selector, client_id, content_hash, type, body, payload, size, urgent, thread_id, in_reply_to, relay_of, hop_limit, late, created_at, expires_at) FROM stdin;
1	1	25	4	session	1	\N	first	\\x69637f18f86e4855e6a8e4ef4dd71c9ab605785d314185631728f306570ed28f	note	the first	\N	9	f	\N	\N	\N	5	f	2026-11-30 17:59:11.763425+00	2026-11-30 18:59:11.763425+00
1	2	25	4	session	1	\N	\N	\N	note	2	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.819644+00	\N
1	3	25	4	session	1	\N	\N	\N	note	4	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.819781+00	\N
1	4	25	4	session	1	\N	\N	\N	note	6	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.819786+00	\N
1	5	25	4	session	1	\N	\N	\N	note	8	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.81979+00	\N
1	6	25	4	session	1	\N	\N	\N	note	10	\N	2	f	\N	\N	\N	5	f	2026-11-30 17:59:11.819794+00	\N
1	7	26	5	session	1	\N	\N	\N	note	1	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.824182+00	\N
1	8	26	5	session	1	\N	\N	\N	note	3	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.824276+00	\N
1	9	26	5	session	1	\N	\N	\N	note	5	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.824282+00	\N
1	10	26	5	session	1	\N	\N	\N	note	7	\N	1	t	\N	\N	\N	5	f	2026-11-30 17:59:11.824286+00	\N
1	11	26	5	session	1	\N	\N	\N	note	11	\N	2	f	\N	\N	\N	5	f	2026-11-30 17:59:11.824289+00	\N
1	12	26	5	session	1	\N	\N	\N	note	9	\N	1	f	\N	\N	\N	5	f	2026-11-30 17:59:11.824293+00	\N
1	13	25	4	session	1	\N	\N	\N	note	0	\N	1	t	\N	\N	\N	5	f	2026-11-30 17:59:11.826837+00	\N
1	14	3	4	session	1	devmac	\N	\N	note	to devmac	\N	9	f	\N	\N	\N	5	f	2026-11-30 17:59:11.873154+00	\N
1	15	8	4	session	1	reach	\N	\N	note	to reach	\N	8	f	\N	\N	\N	5	f	2026-11-30 17:59:11.87604+00	\N
1	16	1	4	session	1	everyone	\N	\N	note	to everyone	\N	11	f	\N	\N	\N	5	f	2026-11-30 17:59:11.877938+00	\N
1	17	5	4	session	1	eric	\N	\N	note	to eric	\N	7	f	\N	\N	\N	5	f	2026-11-30 17:59:11.880468+00	\N
1	18	19	4	session	1	devmac-agent#1	\N	\N	note	to devmac-agent#1	\N	17	f	\N	\N	\N	5	f	2026-11-30 17:59:11.882466+00	\N
\.


--
-- Data for Name: conversations; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.conversations (realm_id, conv_id, name, title, created_at) FROM stdin;
1	1	@everyone	\N	2026-11-30 17:59:10.7531+00
1	2	@work3	\N	2026-11-30 17:59:10.755677+00
1	3	@devmac	\N	2026-11-30 17:59:10.76583+00
1	5	@eric	\N	2026-11-30 17:59:10.820639+00
1	8	@reach	\N	2026-11-30 17:59:10.886759+00
1	10	@work3-agent-reach	\N	2026-11-30 17:59:10.889205+00
1	11	@work3-agent-reach#1	\N	2026-11-30 17:59:10.889714+00
1	16	@work3-agent-reach#2	\N	2026-11-30 17:59:10.94735+00
1	18	@devmac-agent	\N	2026-11-30 17:59:11.009221+00
1	19	@devmac-agent#1	\N	2026-11-30 17:59:11.011696+00
1	23	@devmac-agent#2	\N	2026-11-30 17:59:11.068076+00
1	25	room-0	\N	2026-11-30 17:59:11.115013+00
1	26	room-1	\N	2026-11-30 17:59:11.169262+00
1	34	@devmac-tool	\N	2026-11-30 17:59:11.541707+00
1	35	@devmac-tool#7	\N	2026-11-30 17:59:11.54221+00
1	42	@gone	\N	2026-11-30 17:59:11.963932+00
\.


--
-- Data for Name: handle_counters; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.handle_counters (realm_id, label, last_n) FROM stdin;
1	work3-agent-reach	2
1	devmac-agent	2
1	devmac-tool	7
\.


--
-- Data for Name: invites; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.invites (realm_id, invite_id, name, hash, created_at, expires_at) FROM stdin;
\.


--
-- Data for Name: names; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.names (realm_id, name, kind, created_at) FROM stdin;
1	work3	box	2026-11-30 17:59:10.749919+00
1	devmac	box	2026-11-30 17:59:10.765074+00
1	eric	person	2026-11-30 17:59:10.819661+00
1	reach	role	2026-11-30 17:59:10.879783+00
1	gone	box	2026-11-30 17:59:11.962171+00
\.


--
-- Data for Name: realms; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.realms (realm_id, name, created_at, expires_at, keep_days) FROM stdin;
1	main	2026-11-30 17:59:10.272766+00	\N	\N
\.


--
-- Data for Name: sweeps; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.sweeps (name, until) FROM stdin;
retention	2026-11-30 17:59:10.296987+00
closing	2026-11-30 17:59:11.802518+00
\.


--
-- Data for Name: tokens; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.tokens (realm_id, token_id, name, slot, hash, created_at, expires_at, revoked_at) FROM stdin;
1	tok_43886971c8d7f9eb	work3	1	\\xb263cd53ff1678f7bae8a55f7a47fd204bf160d7ec505434f594238a17327566	2026-11-30 17:59:10.758912+00	\N	\N
1	tok_d72d689463fcf6b1	devmac	1	\\x6fb3902e0ee6f7ac9b0fae47d03a1d993c10ed580809a1f53c9f22e0b9c9ae92	2026-11-30 17:59:10.770853+00	\N	\N
1	tok_8ffe9928d5df4432	eric	1	\\xde6ecb133a2361b887f8860b26c64319a47dc0c7e4add1133531253342dff531	2026-11-30 17:59:10.82649+00	\N	\N
1	tok_cbfdb6f0e8add2cb	gone	1	\\x4fda4f55b1612e036dfb8e74aabfd735d99d1b63f67442b3246a2b80296c5286	2026-11-30 17:59:11.965319+00	\N	2026-11-30 17:59:11.968249+00
\.


--
-- Data for Name: undelivered; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.undelivered (realm_id, id, reason, reported_at) FROM stdin;
\.


--
-- Data for Name: webhook_rooms; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.webhook_rooms (realm_id, webhook_id, conv_id, looked_id, nudged_id, told_id) FROM stdin;
\.


--
-- Data for Name: webhooks; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.webhooks (realm_id, webhook_id, agent_id, url, secret, since_id, created_at, next_at, attempts, failing_since, failure, disabled_at) FROM stdin;
\.


--
-- Name: agents_agent_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.agents_agent_id_seq', 9, true);


--
-- Name: audit_log_audit_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.audit_log_audit_id_seq', 5, true);


--
-- Name: batches_batch_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.batches_batch_id_seq', 6, true);


--
-- Name: conv_messages_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.conv_messages_id_seq', 18, true);


--
-- Name: conversations_conv_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.conversations_conv_id_seq', 42, true);


--
-- Name: realms_realm_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.realms_realm_id_seq', 1, true);


--
-- Name: agents agents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (realm_id, agent_id);


--
-- Name: agents agents_realm_id_handle_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_realm_id_handle_key UNIQUE (realm_id, handle);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: audit_log audit_log_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id);


--
-- Name: batch_rooms batch_rooms_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batch_rooms
    ADD CONSTRAINT batch_rooms_pkey PRIMARY KEY (realm_id, batch_id, conv_id);


--
-- Name: batches batches_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (realm_id, batch_id);


--
-- Name: batches batches_realm_id_lease_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_realm_id_lease_key UNIQUE (realm_id, lease);


--
-- Name: conv_members conv_members_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_members
    ADD CONSTRAINT conv_members_pkey PRIMARY KEY (realm_id, agent_id, conv_id);


--
-- Name: conv_messages conv_messages_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_messages
    ADD CONSTRAINT conv_messages_pkey PRIMARY KEY (realm_id, id);


--
-- Name: conversations conversations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (realm_id, conv_id);


--
-- Name: conversations conversations_realm_id_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_realm_id_name_key UNIQUE (realm_id, name);


--
-- Name: handle_counters handle_counters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.handle_counters
    ADD CONSTRAINT handle_counters_pkey PRIMARY KEY (realm_id, label);


--
-- Name: invites invites_hash_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_hash_key UNIQUE (hash);


--
-- Name: invites invites_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_pkey PRIMARY KEY (realm_id, invite_id);


--
-- Name: names names_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.names
    ADD CONSTRAINT names_pkey PRIMARY KEY (realm_id, name);


--
-- Name: names names_span_excl; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.names
    ADD CONSTRAINT names_span_excl EXCLUDE USING gist (span WITH &&);


--
-- Name: realms realms_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.realms
    ADD CONSTRAINT realms_name_key UNIQUE (name);


--
-- Name: realms realms_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.realms
    ADD CONSTRAINT realms_pkey PRIMARY KEY (realm_id);


--
-- Name: sweeps sweeps_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sweeps
    ADD CONSTRAINT sweeps_pkey PRIMARY KEY (name);


--
-- Name: tokens tokens_hash_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_hash_key UNIQUE (hash);


--
-- Name: tokens tokens_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (realm_id, token_id);


--
-- Name: undelivered undelivered_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.undelivered
    ADD CONSTRAINT undelivered_pkey PRIMARY KEY (realm_id, id);


--
-- Name: webhook_rooms webhook_rooms_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_rooms
    ADD CONSTRAINT webhook_rooms_pkey PRIMARY KEY (realm_id, webhook_id, conv_id);


--
-- Name: webhooks webhooks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (realm_id, webhook_id);


--
-- Name: agents_box_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX agents_box_idx ON public.agents USING btree (realm_id, box_id);


--
-- Name: agents_checkin_key; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX agents_checkin_key ON public.agents USING btree (realm_id, box_id, checkin_key) WHERE (checkin_key IS NOT NULL);


--
-- Name: agents_retired_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX agents_retired_at_idx ON public.agents USING btree (retired_at) WHERE (retired_at IS NOT NULL);


--
-- Name: batch_rooms_room_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX batch_rooms_room_idx ON public.batch_rooms USING btree (realm_id, conv_id, last_id);


--
-- Name: batches_open_key; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX batches_open_key ON public.batches USING btree (realm_id, agent_id) WHERE (committed_at IS NULL);


--
-- Name: batches_poll_key_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX batches_poll_key_idx ON public.batches USING btree (realm_id, agent_id, batch_id DESC) WHERE (poll_key IS NOT NULL);


--
-- Name: conv_members_room_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conv_members_room_idx ON public.conv_members USING btree (realm_id, conv_id) WHERE (left_at IS NULL);


--
-- Name: conv_messages_client_id_key; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX conv_messages_client_id_key ON public.conv_messages USING btree (realm_id, sender_id, client_id) WHERE (client_id IS NOT NULL);


--
-- Name: conv_messages_expires_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conv_messages_expires_at_idx ON public.conv_messages USING btree (expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: conv_messages_room_key; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX conv_messages_room_key ON public.conv_messages USING btree (realm_id, conv_id, id);


--
-- Name: conv_messages_thread_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conv_messages_thread_idx ON public.conv_messages USING btree (realm_id, thread_id, id) WHERE (thread_id IS NOT NULL);


--
-- Name: conv_messages_words_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conv_messages_words_idx ON public.conv_messages USING gin (public.message_words(body, payload));


--
-- Name: tokens_slot_key; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX tokens_slot_key ON public.tokens USING btree (realm_id, name, slot) WHERE (revoked_at IS NULL);


--
-- Name: webhook_rooms_waiting_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_rooms_waiting_idx ON public.webhook_rooms USING btree (realm_id, webhook_id, nudged_id) WHERE (nudged_id > told_id);


--
-- Name: webhooks_agent_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhooks_agent_idx ON public.webhooks USING btree (realm_id, agent_id);


--
-- Name: agents agents_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: batch_rooms batch_rooms_realm_id_batch_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batch_rooms
    ADD CONSTRAINT batch_rooms_realm_id_batch_id_fkey FOREIGN KEY (realm_id, batch_id) REFERENCES public.batches(realm_id, batch_id) ON DELETE CASCADE;


--
-- Name: batch_rooms batch_rooms_realm_id_conv_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batch_rooms
    ADD CONSTRAINT batch_rooms_realm_id_conv_id_fkey FOREIGN KEY (realm_id, conv_id) REFERENCES public.conversations(realm_id, conv_id) ON DELETE CASCADE;


--
-- Name: batch_rooms batch_rooms_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batch_rooms
    ADD CONSTRAINT batch_rooms_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: batches batches_realm_id_agent_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_realm_id_agent_id_fkey FOREIGN KEY (realm_id, agent_id) REFERENCES public.agents(realm_id, agent_id);


--
-- Name: batches batches_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: conv_members conv_members_realm_id_agent_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_members
    ADD CONSTRAINT conv_members_realm_id_agent_id_fkey FOREIGN KEY (realm_id, agent_id) REFERENCES public.agents(realm_id, agent_id);


--
-- Name: conv_members conv_members_realm_id_conv_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_members
    ADD CONSTRAINT conv_members_realm_id_conv_id_fkey FOREIGN KEY (realm_id, conv_id) REFERENCES public.conversations(realm_id, conv_id) ON DELETE CASCADE;


--
-- Name: conv_members conv_members_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_members
    ADD CONSTRAINT conv_members_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: conv_messages conv_messages_realm_id_conv_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_messages
    ADD CONSTRAINT conv_messages_realm_id_conv_id_fkey FOREIGN KEY (realm_id, conv_id) REFERENCES public.conversations(realm_id, conv_id) ON DELETE CASCADE;


--
-- Name: conv_messages conv_messages_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_messages
    ADD CONSTRAINT conv_messages_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: conv_messages conv_messages_realm_id_sender_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conv_messages
    ADD CONSTRAINT conv_messages_realm_id_sender_id_fkey FOREIGN KEY (realm_id, sender_id) REFERENCES public.agents(realm_id, agent_id);


--
-- Name: conversations conversations_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: handle_counters handle_counters_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.handle_counters
    ADD CONSTRAINT handle_counters_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: invites invites_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: names names_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.names
    ADD CONSTRAINT names_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: tokens tokens_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: tokens tokens_realm_id_name_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_realm_id_name_fkey FOREIGN KEY (realm_id, name) REFERENCES public.names(realm_id, name) ON DELETE CASCADE;


--
-- Name: undelivered undelivered_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.undelivered
    ADD CONSTRAINT undelivered_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: undelivered undelivered_realm_id_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.undelivered
    ADD CONSTRAINT undelivered_realm_id_id_fkey FOREIGN KEY (realm_id, id) REFERENCES public.conv_messages(realm_id, id) ON DELETE CASCADE;


--
-- Name: webhook_rooms webhook_rooms_realm_id_conv_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_rooms
    ADD CONSTRAINT webhook_rooms_realm_id_conv_id_fkey FOREIGN KEY (realm_id, conv_id) REFERENCES public.conversations(realm_id, conv_id) ON DELETE CASCADE;


--
-- Name: webhook_rooms webhook_rooms_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_rooms
    ADD CONSTRAINT webhook_rooms_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- Name: webhook_rooms webhook_rooms_realm_id_webhook_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_rooms
    ADD CONSTRAINT webhook_rooms_realm_id_webhook_id_fkey FOREIGN KEY (realm_id, webhook_id) REFERENCES public.webhooks(realm_id, webhook_id) ON DELETE CASCADE;


--
-- Name: webhooks webhooks_realm_id_agent_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_realm_id_agent_id_fkey FOREIGN KEY (realm_id, agent_id) REFERENCES public.agents(realm_id, agent_id);


--
-- Name: webhooks webhooks_realm_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_realm_id_fkey FOREIGN KEY (realm_id) REFERENCES public.realms(realm_id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


