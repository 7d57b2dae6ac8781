"""The kinds of panels that the dashboards are made of.

A query names its brokers by the variable ``$broker``: write ``{B}`` for the matcher. ``RATE`` is the window of a rate,
which Grafana chooses. A list of queues never has more than TOP rows, because a broker may have ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models import prometheus as prometheus_models

B: Final = 'broker=~"$broker"'
RATE: Final = "[$__rate_interval]"
TOP: Final = 20
OF_QUEUE: Final = "broker, address, queue"
OF_ADDRESS: Final = "broker, address"
SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8
_STAT_HEIGHT: Final = 4
_WIDTH: Final = 24
# The labels of tables, in the order of their columns; labels that are not here come after them under their own names.
_HEADERS: Final = {
    "severity": "Severity", "alertname": "Alert", "broker": "Broker", "queue": "Queue", "address": "Address",
    "acceptor": "Acceptor", "version": "Version", "python": "Python", "compiled": "Compiled", "instance": "Instance",
}  # fmt: skip
_HIDDEN: Final = ("Time", "__name__", "job", "alertstate")

CONSOLE: Final = "http://${console}/ui/#/"
_PAGES: Final = {
    "Queue": f"{CONSOLE}queues/${{__data.fields.queue:percentencode}}",
    "Address": f"{CONSOLE}addresses/${{__data.fields.address:percentencode}}",
    "Instance": "http://${__data.fields.instance:raw}/ui/",
}
"""Where the cells of a column lead to: pages of the broker's console. A field goes by the name of its label."""

AnyPanel = Builder[models.Panel]


def _query(expression: str, legend: str = "", ref_id: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend or "__auto").ref_id(ref_id)


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def figure(
    title: str, expression: str, unit: str = "short", *, bad_from: float | None = None, legend: str = "", span: int = 3
) -> AnyPanel:
    """One number, red from ``bad_from`` on. With ``legend`` the name of the series is shown instead."""
    steps = [models.Threshold(value=None, color="green")]
    if bad_from is not None:
        steps.append(models.Threshold(value=bad_from, color="red"))
    panel = (
        stat.Panel()
        .title(title)
        .datasource(SOURCE)
        .unit(unit)
        .height(_STAT_HEIGHT)
        .span(span)
        .thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common_models.BigValueGraphMode.NONE if legend else common_models.BigValueGraphMode.AREA)
        .with_target(_query(expression, legend))
    )
    return panel.text_mode(common_models.BigValueTextMode.NAME) if legend else panel


def lines(
    title: str,
    queries: Mapping[str, str],
    unit: str = "short",
    *,
    text: str = "",
    exemplars: bool = False,
    is_log: bool = False,
    span: int = 12,
) -> AnyPanel:
    """Lines over time: legend → query. ``exemplars`` shows single messages as points; ``is_log`` is for values of very
    different sizes (a 0 is not drawn).
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(_HEIGHT)
        .span(span)
        .fill_opacity(0 if is_log else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(common.VizLegendOptions().show_legend(True))
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if is_log:
        scale = common.ScaleDistributionConfig().type(common_models.ScaleDistribution.LOG).log(10)
        panel.scale_distribution(scale)
    else:
        panel.min(0)
    for index, (legend, expression) in enumerate(queries.items()):
        query = _query(expression, legend, _letter(index)).range()
        panel.with_target(query.exemplar(True) if exemplars else query)
    return panel


def quantiles(title: str, name: str, *, text: str = "", exemplars: bool = False) -> AnyPanel:
    """The median, the 99th percentile and the mean of a histogram in seconds."""
    buckets = f"sum by (broker, le) (rate({name}_bucket{{{B}}}{RATE}))"
    queries = {
        "p50 {{broker}}": f"histogram_quantile(0.5, {buckets})",
        "p99 {{broker}}": f"histogram_quantile(0.99, {buckets})",
        "mean {{broker}}": f"sum by (broker) (rate({name}_sum{{{B}}}{RATE}))"
        f" / (sum by (broker) (rate({name}_count{{{B}}}{RATE})) > 0)",
    }
    return lines(title, queries, "s", text=text, exemplars=exemplars, is_log=True)


def spread(title: str, name: str, text: str = "") -> AnyPanel:
    """How a histogram's values are spread, over time."""
    query = _query(f"sum by (le) (increase({name}_bucket{{{B}}}{RATE}))", "{{le}}")
    return (
        heatmap.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .height(_HEIGHT)
        .span(12)
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
        .with_target(query.range().format(prometheus_models.PromQueryFormat.HEATMAP))
    )


def rows(
    title: str,
    columns: Mapping[str, str],
    units: Mapping[str, str],
    *,
    text: str = "",
    hidden: Sequence[str] = ("instance",),
    widths: Mapping[str, int] | None = None,
    span: int = _WIDTH,
    rank: str | None = None,
) -> AnyPanel:
    """A table of what the queries find now: header → query. Series with the same labels share a row; ``units`` and
    ``widths`` (pixels) are by header, ``hidden`` are labels. The rows are in the order of the label ``rank``, which is
    not shown; without one, those with most of the first column come first.
    """
    values = {f"Value #{_letter(index)}": header for index, header in enumerate(columns)}
    names = {**_HEADERS, **values}
    if len(columns) == 1:
        names["Value"] = next(iter(columns))  # Grafana leaves out the letter of a query that is alone
    options = {
        "renameByName": names,
        "indexByName": {name: index for index, name in enumerate(names)},
        "excludeByName": dict.fromkeys((*_HIDDEN, *hidden, *((rank,) if rank else ())), True),
    }
    panel = (
        table.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .height(_HEIGHT)
        .span(span)
        .filterable(True)
        .no_value("none")
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    )
    if rank:
        ranked = {"fields": {}, "sort": [{"field": rank}]}
        panel.with_transformation(models.DataTransformerConfig(id_val="sortBy", options=ranked))
    else:
        panel.sort_by([common.TableSortByFieldState().display_name(next(iter(columns))).desc(True)])
    panel.with_transformation(models.DataTransformerConfig(id_val="organize", options=options))
    for index, header in enumerate(columns):
        settings = {"unit": units.get(header), "noValue": "–" if index else None}  # the first one has no empty cells
        properties = [models.DynamicConfigValue(id_val=name, value=value) for name, value in settings.items() if value]
        if properties:
            panel.override_by_name(header, properties)
    for header, url in _PAGES.items():
        link = {"title": "Console", "url": url, "targetBlank": True}
        panel.override_by_name(header, [models.DynamicConfigValue(id_val="links", value=[link])])
    for header, width in (widths or {}).items():
        panel.override_by_name(header, [models.DynamicConfigValue(id_val="custom.width", value=width)])
    for index, expression in enumerate(columns.values()):
        query = _query(expression, ref_id=_letter(index)).instant()
        panel.with_target(query.format(prometheus_models.PromQueryFormat.TABLE))
    return panel


def top(
    title: str,
    columns: Mapping[str, str],
    units: Mapping[str, str] | None = None,
    *,
    by: str = OF_QUEUE,
    text: str = "",
    span: int = _WIDTH,
) -> AnyPanel:
    """The TOP queues (``by``: or addresses) with most of the first column; the others are about the same ones. A narrow
    table leaves out the address of a queue: the queue's name is enough within a broker.
    """
    grouped = {header: f"sum by ({by}) ({expression})" for header, expression in columns.items()}
    header, first = next(iter(grouped.items()))
    leaders = f"topk({TOP}, {first} > 0)"
    queries = {name: f"({query}) and on ({by}) {leaders}" for name, query in grouped.items()}
    queries[header] = leaders
    hidden = ("address",) if by == OF_QUEUE and span < _WIDTH else ()
    return rows(title, queries, units or {}, text=text, hidden=hidden, span=span)


Row = tuple[str, Sequence[AnyPanel]]


def _console_variable() -> Builder[models.VariableModel]:
    """Whose console links lead to: where Prometheus scrapes a broker, there is its console, too."""
    return (
        dashboard.QueryVariable("console")
        .label("Console of")
        .description("Host and port of the HTTP acceptor to whose console links lead")
        .datasource(SOURCE)
        .query(f"label_values(artemis_active{{{B}}}, instance)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .allow_custom_value(True)
    )


def screen(
    uid: str,
    title: str,
    text: str,
    content: Sequence[Row],
    variables: Sequence[Builder[models.VariableModel]] = (),
    *,
    page: str = "",
) -> models.Dashboard:
    """A dashboard of rows of panels, with a data source and brokers to choose from, and links to the others and to a
    page of the console.
    """
    brokers = (
        dashboard.QueryVariable("broker")
        .label("Broker")
        .datasource(SOURCE)
        .query("label_values(artemis_active, broker)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text="All", value="$__all"))
    )
    found = (
        dashboard.Dashboard(f"Artemis: {title}")
        .uid(uid)
        .description(text)
        .tags(["artemis"])
        .time("now-1h", "now")
        .refresh("10s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Artemis")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["artemis"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .link(
            dashboard.DashboardLink("Console")
            .type(models.DashboardLinkType.LINK)
            .icon("external link")
            .url(CONSOLE + page)
            .target_blank(True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(brokers)
        .with_variable(_console_variable())
    )
    for variable in variables:
        found.with_variable(variable)
    for name, panels in content:
        found.with_row(dashboard.Row(name))
        for panel in panels:
            found.with_panel(panel)
    built = found.build()
    for number, placed in enumerate(built.panels or [], 1):
        placed.id_val = number
    return built


def queue_variable() -> Builder[models.VariableModel]:
    """One queue to choose, by its name."""
    return (
        dashboard.QueryVariable("queue")
        .label("Queue")
        .datasource(SOURCE)
        .query('label_values(artemis_message_count{broker=~"$broker"}, queue)')
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
