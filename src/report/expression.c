// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recursive descent over:
 *	or      := and { "||" and }
 *	and     := compare { "&&" compare }
 *	compare := sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
 *	sum     := term { ("+" | "-") term }
 *	term    := sign { ("*" | "/") sign }
 *	sign    := { "-" | "!" } primary
 *	primary := NUMBER | COLUMN | FUNCTION "(" or { "," or } ")" | "(" or ")"
 * A column may be compared (== or !=) with a 'text' in quotes. Columns are resolved here.
 */
#include "report/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct report_view *view;
	const char *start, *at;
	struct err *err;
	unsigned int nesting;
	int code; /* sticky */
};

static uint32_t parse_or(struct parser *parser);
static uint32_t parse_sum(struct parser *parser);

static uint32_t fail(struct parser *parser, const char *why)
{
	bool longer = strlen(parser->start) > 200;

	if (!parser->code)
		parser->code = err_set(parser->err, -EINVAL, "`%.200s%s`: %s at character %zu",
				       parser->start, longer ? "..." : "", why,
				       (size_t)(parser->at - parser->start) + 1);
	return VIEW_NONE;
}

static uint32_t fail_memory(struct parser *parser)
{
	if (!parser->code)
		parser->code = err_nomem(parser->err);
	return VIEW_NONE;
}

static void blanks(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n')
		parser->at++;
}

static bool accept(struct parser *parser, const char *token)
{
	size_t size = strlen(token);

	blanks(parser);
	if (strncmp(parser->at, token, size))
		return false;
	parser->at += size;
	return true;
}

static struct view_node *node_at(struct parser *parser, uint32_t index)
{
	return &parser->view->nodes[index];
}

static uint32_t new_node(struct parser *parser, enum node_kind kind)
{
	struct report_view *view = parser->view;
	struct view_node *node;

	if (parser->code)
		return VIEW_NONE;
	if (view->nnodes >= VIEW_NODES_MAX)
		return fail(parser, "the expressions are too long");
	node = array_grow(&view->nodes, &view->nnodes, &view->nodes_capacity, sizeof(*node));
	if (!node)
		return fail_memory(parser);
	node->kind = kind;
	node->left = node->right = VIEW_NONE;
	node->depth = 1;
	return view->nnodes - 1;
}

static uint32_t join(struct parser *parser, enum node_kind kind, uint32_t left, uint32_t right)
{
	uint32_t operands[] = { left, right }, index, i;
	struct view_node *node;

	if (parser->code)
		return VIEW_NONE;
	index = new_node(parser, kind);
	if (index == VIEW_NONE)
		return VIEW_NONE;
	node = node_at(parser, index);
	node->left = left;
	node->right = right;
	for (i = 0; i < 2; i++) {
		const struct view_node *operand;

		if (operands[i] == VIEW_NONE)
			continue;
		operand = node_at(parser, operands[i]);
		if (operand->depth >= node->depth)
			node->depth = operand->depth + 1;
		node->counters |= operand->counters;
		node->aggregates |= operand->aggregates;
	}
	if (node->depth > VIEW_DEPTH_MAX)
		return fail(parser, "the expression is too deep");
	return index;
}

/* ---- names ---------------------------------------------------------------------------------- */
static bool name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '%' || c == '$' || c == '@';
}

static size_t name_size(const char *text)
{
	size_t size = 0;

	if (!name_start(*text))
		return 0;
	while (name_start(text[size]) || isdigit((unsigned char)text[size]) || text[size] == '.' ||
	       text[size] == '[' || text[size] == ']')
		size++;
	return size;
}

static const struct {
	const char *name;
	enum hist_number number;
} hist_parts[] = {
	{ "n", HIST_N },     { "sum", HIST_SUM }, { "mean", HIST_MEAN },
	{ "min", HIST_MIN }, { "max", HIST_MAX },
};

/* "n", "mean", "p99", "p999" of a histogram; false: no such part. */
static bool hist_part(const char *part, struct view_node *node)
{
	static const uint32_t powers[] = { 1, 100, 10, 1 };
	size_t i, digits;

	for (i = 0; i < sizeof(hist_parts) / sizeof(hist_parts[0]); i++) {
		if (!strcmp(part, hist_parts[i].name)) {
			node->hist = hist_parts[i].number;
			return true;
		}
	}
	if (*part != 'p')
		return false;
	digits = strspn(part + 1, "0123456789");
	if (digits < 1 || digits > 3 || part[digits + 1])
		return false;
	node->hist = HIST_QUANTILE;
	node->per_mille = strtoul(part + 1, NULL, 10) * powers[digits];
	return true;
}

static uint32_t computed_node(struct parser *parser, const struct view_column *column)
{
	uint32_t index = new_node(parser, NODE_COMPUTED);
	struct view_node *node;

	if (index == VIEW_NONE)
		return index;
	node = node_at(parser, index);
	node->index = column - parser->view->columns;
	node->counters = node_at(parser, column->root)->counters;
	node->aggregates = node_at(parser, column->root)->aggregates;
	return index;
}

static uint32_t place_node(struct parser *parser, const struct place *place, const char *part)
{
	uint32_t index = new_node(parser, *part ? NODE_HIST : NODE_PLACE);
	struct view_node *node;

	if (index == VIEW_NONE)
		return index;
	node = node_at(parser, index);
	node->place = *place;
	node->counters = place->class == PLACE_COUNTER || place->unsupported;
	if (*part && !hist_part(part, node))
		return VIEW_NONE;
	return index;
}

/* A column or a part of one, whatever it holds. */
static uint32_t parse_column(struct parser *parser)
{
	struct report_view *view = parser->view;
	size_t size = name_size(parser->at);
	const char *name = parser->at, *rest = "";
	struct view_column *column = view_column_find(view, name, size);
	char path[256];
	struct place place;
	uint32_t index;

	if (column && column->computed) {
		parser->at += size;
		return computed_node(parser, column);
	}
	if (column && column->cpu) {
		parser->at += size;
		return new_node(parser, NODE_CPU);
	}
	if (size < sizeof(path)) {
		memcpy(path, name, size);
		path[size] = 0;
	}
	if (size < sizeof(path) && !view_path(view, path, size, &place, &rest)) {
		index = place_node(parser, &place, rest);
		parser->at += size;
		if (index != VIEW_NONE || parser->code)
			return index;
		parser->at = name;
	}
	parser->code = view_no_column(view, name, size, parser->err);
	return VIEW_NONE;
}

/* ---- functions ------------------------------------------------------------------------------ */
static const struct {
	const char *name;
	enum aggregate_kind aggregate; /* with one argument */
	enum hist_number hist;         /* with a histogram */
	enum node_kind join;           /* with several; NODE_NUMBER: not allowed */
} functions[] = {
	{ "total", AGGREGATE_TOTAL, HIST_N, NODE_NUMBER },
	{ "mean", AGGREGATE_MEAN, HIST_MEAN, NODE_NUMBER },
	{ "min", AGGREGATE_MIN, HIST_MIN, NODE_MIN },
	{ "max", AGGREGATE_MAX, HIST_MAX, NODE_MAX },
};

static bool is_hist(struct parser *parser, uint32_t index)
{
	return index != VIEW_NONE && node_at(parser, index)->kind == NODE_PLACE &&
	       node_at(parser, index)->place.class == PLACE_HIST;
}

/* Operands of arithmetic must be numbers. */
static uint32_t need_number(struct parser *parser, uint32_t index)
{
	const struct view_node *node;

	if (parser->code || index == VIEW_NONE)
		return VIEW_NONE;
	node = node_at(parser, index);
	if (node->kind != NODE_PLACE || place_has_number(&node->place))
		return index;
	if (node->place.class == PLACE_HIST)
		return fail(parser, "a histogram is no number: use .n, .sum, .mean, .p99 or p()");
	return fail(parser, "a text, array or struct is no number");
}

/* A number out of the histogram that @index is. */
static uint32_t hist_node(struct parser *parser, uint32_t index, enum hist_number number,
			  uint32_t per_mille)
{
	struct view_node *node = node_at(parser, index);

	node->kind = NODE_HIST;
	node->hist = number;
	node->per_mille = per_mille;
	return index;
}

/* p(HIST, PER_MILLE), behind the bracket. */
static uint32_t parse_quantile(struct parser *parser)
{
	unsigned long long per_mille;
	uint32_t index;
	char *end;

	blanks(parser);
	if (!name_size(parser->at))
		return fail(parser, "p() needs a histogram column");
	index = parse_column(parser);
	if (parser->code)
		return VIEW_NONE;
	if (!is_hist(parser, index))
		return fail(parser, "p() needs a histogram column");
	if (!accept(parser, ","))
		return fail(parser, "p(HIST, PER_MILLE) needs two arguments");
	blanks(parser);
	if (!isdigit((unsigned char)*parser->at))
		return fail(parser, "p() needs a per mille from 0 to 1000");
	per_mille = strtoull(parser->at, &end, 10);
	if (per_mille > 1000)
		return fail(parser, "p() needs a per mille from 0 to 1000");
	parser->at = end;
	if (!accept(parser, ")"))
		return fail(parser, "`)` is missing");
	return hist_node(parser, index, HIST_QUANTILE, per_mille);
}

static uint32_t aggregate_node(struct parser *parser, enum aggregate_kind kind, uint32_t argument,
			       const char *source, size_t size)
{
	struct report_view *view = parser->view;
	struct view_aggregate *aggregate;
	uint32_t index;

	if (need_number(parser, argument) == VIEW_NONE)
		return VIEW_NONE;
	index = join(parser, NODE_AGGREGATE, argument, VIEW_NONE);
	if (index == VIEW_NONE)
		return VIEW_NONE;
	aggregate = array_grow(&view->aggregates, &view->naggregates, &view->aggregates_capacity,
			       sizeof(*aggregate));
	if (!aggregate)
		return fail_memory(parser);
	aggregate->kind = kind;
	aggregate->root = argument;
	aggregate->source = strndup(source, size);
	if (!aggregate->source)
		return fail_memory(parser);
	node_at(parser, index)->index = view->naggregates - 1;
	node_at(parser, index)->aggregates = true;
	return index;
}

static uint32_t parse_arguments(struct parser *parser, size_t function, const char *source)
{
	uint32_t first = parse_or(parser), next;

	if (parser->code)
		return VIEW_NONE;
	if (accept(parser, ")")) {
		if (is_hist(parser, first) && functions[function].aggregate != AGGREGATE_TOTAL)
			return hist_node(parser, first, functions[function].hist, 0);
		if (node_at(parser, first)->aggregates)
			return fail(parser, "a function over all rows inside another one");
		return aggregate_node(parser, functions[function].aggregate, first, source,
				      parser->at - source);
	}
	if (functions[function].join == NODE_NUMBER)
		return fail(parser, "this function takes one argument, then `)`");
	first = need_number(parser, first);
	while (accept(parser, ",")) {
		next = need_number(parser, parse_or(parser));
		first = join(parser, functions[function].join, first, next);
		if (parser->code)
			return VIEW_NONE;
	}
	return accept(parser, ")") ? first : fail(parser, "`)` is missing");
}

static uint32_t parse_call(struct parser *parser, size_t size)
{
	const char *source = parser->at;
	size_t i;

	if (size == 1 && *source == 'p') {
		parser->at += 2;
		return parse_quantile(parser);
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strlen(functions[i].name) == size && !memcmp(functions[i].name, source, size)) {
			parser->at += size + 1;
			return parse_arguments(parser, i, source);
		}
	}
	return fail(parser, "no such function (total, mean, min, max, p)");
}

/* ---- the grammar ---------------------------------------------------------------------------- */
static uint32_t parse_number(struct parser *parser)
{
	const char *at = parser->at;
	bool real = false;
	uint32_t index;
	char *end;

	/* strtod() would also take hex, "inf" and the locale's decimal point. */
	while (isdigit((unsigned char)*at) || (*at == '.' && !real))
		real |= *at++ == '.';
	index = new_node(parser, NODE_NUMBER);
	if (index == VIEW_NONE)
		return index;
	errno = 0;
	if (!real) {
		unsigned long long value = strtoull(parser->at, &end, 10);

		if (errno)
			return fail(parser, "the number is too large");
		node_at(parser, index)->number = number_integer(value);
	} else {
		double value = 0, unit = 1;
		const char *digit = parser->at;

		for (; digit < at && *digit != '.'; digit++)
			value = value * 10 + (*digit - '0');
		for (digit += digit < at; digit < at; digit++) {
			value = value * 10 + (*digit - '0');
			unit *= 10;
		}
		node_at(parser, index)->number = number_real(value / unit);
	}
	parser->at = at;
	return index;
}

static uint32_t parse_primary(struct parser *parser)
{
	uint32_t index;
	size_t size;

	blanks(parser);
	size = name_size(parser->at);
	if (size && parser->at[size] == '(')
		return parse_call(parser, size);
	if (size)
		return parse_column(parser);
	if (isdigit((unsigned char)*parser->at) ||
	    (*parser->at == '.' && isdigit((unsigned char)parser->at[1])))
		return parse_number(parser);
	if (accept(parser, "(")) {
		index = parse_or(parser);
		return accept(parser, ")") ? index : fail(parser, "`)` is missing");
	}
	return fail(parser, *parser->at ? "a column, a number or `(` is expected"
					: "the expression ends too early");
}

static uint32_t parse_sign(struct parser *parser)
{
	uint32_t index;

	if (++parser->nesting > VIEW_NESTING_MAX) {
		parser->nesting--;
		return fail(parser, "the expression is too deep");
	}
	if (accept(parser, "-"))
		index = join(parser, NODE_NEGATE, need_number(parser, parse_sign(parser)),
			     VIEW_NONE);
	else if (parser->at[0] == '!' && parser->at[1] != '=' && accept(parser, "!"))
		index = join(parser, NODE_NOT, need_number(parser, parse_sign(parser)), VIEW_NONE);
	else
		index = parse_primary(parser);
	parser->nesting--;
	return index;
}

static uint32_t parse_term(struct parser *parser)
{
	uint32_t left = parse_sign(parser);

	while (!parser->code) {
		enum node_kind kind;

		if (accept(parser, "*"))
			kind = NODE_MULTIPLY;
		else if (accept(parser, "/"))
			kind = NODE_DIVIDE;
		else
			break;
		left = need_number(parser, left);
		left = join(parser, kind, left, need_number(parser, parse_sign(parser)));
	}
	return left;
}

static uint32_t parse_sum(struct parser *parser)
{
	uint32_t left = parse_term(parser);

	while (!parser->code) {
		enum node_kind kind;

		if (accept(parser, "+"))
			kind = NODE_ADD;
		else if (accept(parser, "-"))
			kind = NODE_SUBTRACT;
		else
			break;
		left = need_number(parser, left);
		left = join(parser, kind, left, need_number(parser, parse_term(parser)));
	}
	return left;
}

/* COLUMN == 'text': what is compared is what is printed. */
static uint32_t parse_text(struct parser *parser, uint32_t column, bool equal)
{
	char mark = *parser->at;
	const char *end = strchr(parser->at + 1, mark);
	char *text;

	if (!end)
		return fail(parser, "the text has no closing quote");
	if (column == VIEW_NONE || node_at(parser, column)->kind != NODE_PLACE)
		return fail(parser, "a text can be compared with a column only");
	text = strndup(parser->at + 1, end - parser->at - 1);
	if (!text)
		return fail_memory(parser);
	node_at(parser, column)->kind = NODE_TEXT_IS;
	node_at(parser, column)->text = text;
	parser->at = end + 1;
	return equal ? column : join(parser, NODE_NOT, column, VIEW_NONE);
}

static uint32_t parse_compare(struct parser *parser)
{
	static const struct {
		const char *token;
		enum node_kind kind;
		bool swap;
	} operators[] = { { "<=", NODE_LESS_EQUAL, false }, { ">=", NODE_LESS_EQUAL, true },
			  { "==", NODE_EQUAL, false },      { "!=", NODE_UNEQUAL, false },
			  { "<", NODE_LESS, false },        { ">", NODE_LESS, true } };
	uint32_t left = parse_sum(parser), right;
	size_t i;

	if (parser->code)
		return VIEW_NONE;
	for (i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (!accept(parser, operators[i].token))
			continue;
		blanks(parser);
		if ((*parser->at == '\'' || *parser->at == '"') &&
		    (operators[i].kind == NODE_EQUAL || operators[i].kind == NODE_UNEQUAL))
			return parse_text(parser, left, operators[i].kind == NODE_EQUAL);
		left = need_number(parser, left);
		right = need_number(parser, parse_sum(parser));
		return operators[i].swap ? join(parser, operators[i].kind, right, left)
					 : join(parser, operators[i].kind, left, right);
	}
	return left;
}

static uint32_t parse_and(struct parser *parser)
{
	uint32_t left = parse_compare(parser);

	while (!parser->code && accept(parser, "&&")) {
		left = need_number(parser, left);
		left = join(parser, NODE_AND, left, need_number(parser, parse_compare(parser)));
	}
	return left;
}

static uint32_t parse_or(struct parser *parser)
{
	uint32_t left;

	if (++parser->nesting > VIEW_NESTING_MAX) {
		parser->nesting--;
		return fail(parser, "the expression is too deep");
	}
	left = parse_and(parser);
	while (!parser->code && accept(parser, "||")) {
		left = need_number(parser, left);
		left = join(parser, NODE_OR, left, need_number(parser, parse_and(parser)));
	}
	parser->nesting--;
	return left;
}

int view_expression(struct report_view *view, const char *text, bool boolean, uint32_t *root,
		    const char **end, struct err *err)
{
	struct parser parser = { .view = view, .start = text, .at = text, .err = err };
	uint32_t index = boolean ? parse_or(&parser) : parse_sum(&parser);

	if (!parser.code && index == VIEW_NONE)
		fail(&parser, "no expression");
	if (parser.code)
		return parser.code;
	blanks(&parser);
	*root = index;
	*end = parser.at;
	return 0;
}
