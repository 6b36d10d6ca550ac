"""Models with every kind of relation a usual application has."""

from django.db import models


class Writer(models.Model):
    """A person."""

    name = models.CharField(max_length=60, unique=True)
    email = models.EmailField(blank=True, default="")
    born = models.DateField(null=True, blank=True)


class Profile(models.Model):
    """One to one with a writer."""

    writer = models.OneToOneField(Writer, models.CASCADE, related_name="profile")
    settings = models.JSONField(default=dict)
    token = models.UUIDField(null=True)


class Label(models.Model):
    """Many to many with articles."""

    name = models.SlugField(unique=True)


class Article(models.Model):
    """Has a writer, labels, comments."""

    writer = models.ForeignKey(Writer, models.PROTECT, related_name="articles")
    title = models.CharField(max_length=120)
    body = models.TextField(blank=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    rating = models.FloatField(null=True)
    views = models.PositiveIntegerField(default=0)
    published = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    reading_time = models.DurationField(null=True)
    picture = models.BinaryField(null=True)
    labels = models.ManyToManyField(Label, related_name="articles")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["published", "-created"], name="article_recent")]
        constraints = [
            models.UniqueConstraint(fields=["writer", "title"], name="article_once"),
            models.CheckConstraint(condition=models.Q(price__gte=0), name="article_price_positive"),
        ]


class Comment(models.Model):
    """A tree of comments."""

    article = models.ForeignKey(Article, models.CASCADE, related_name="comments")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="replies")
    text = models.CharField(max_length=200)
